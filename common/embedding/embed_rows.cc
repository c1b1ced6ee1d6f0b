#include "common/embedding/embed_rows.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/embedding/alignment.h"
#include "common/embedding/label_graph.h"

namespace privatemail {
namespace {

// Labels of rows without classes; alpha is 0 then.
std::vector<int32_t> OneClass(Eigen::Index rows) {
  return std::vector<int32_t>(static_cast<size_t>(rows), 0);
}

}  // namespace

Matrix PublicStart(const PublicParameters& parameters, const LabelGraph& label_graph) {
  const EmbeddingSettings& settings = parameters.settings;
  if (settings.start == StartKind::kClasses) {
    return settings.start_stddev * label_graph.CodeOfRows(settings.embedding_dim);
  }
  return DeterministicStart(Fingerprint(parameters), label_graph.size(), settings.embedding_dim,
                            settings.start_stddev);
}

AffinityPlan PlanEmbedding(const PublicParameters& parameters, Eigen::Index rows) {
  return PlanAffinity({.rows = rows,
                       .cols = parameters.feature_dim,
                       .kernel_denominator = parameters.settings.KernelDenominator(),
                       .columns = parameters.settings.embedding_dim,
                       .max_squared_length = kUnitSquaredLength,
                       .tolerance = kEmbeddingTolerance});
}

absl::StatusOr<EmbeddedRows> EmbedRows(const PublicParameters& parameters,
                                       std::shared_ptr<const PointSource> rows,
                                       const std::vector<int32_t>& labels,
                                       const StepObserver& observer,
                                       const AffinityOperator* feature_graph) {
  const EmbeddingSettings& settings = parameters.settings;
  const LabelGraph label_graph(parameters.HasClasses() ? labels : OneClass(rows->rows()),
                               settings.label_graph, settings.KernelDenominator());
  EmbeddedRows result;
  result.plan = PlanEmbedding(parameters, rows->rows());
  std::unique_ptr<const AffinityOperator> made;
  if (feature_graph == nullptr) {
    made = MakeAffinity(result.plan, std::move(rows), settings.KernelDenominator());
    feature_graph = made.get();
  }
  Vector degrees;
  PM_ASSIGN_OR_RETURN(
      result.coordinates,
      SmlqIterate(PublicStart(parameters, label_graph), *feature_graph, label_graph, settings.alpha,
                  settings.steps, settings.normalise, observer, &degrees));
  const ProductObserver watch = [&](double) { return observer(settings.steps, settings.steps); };
  PM_ASSIGN_OR_RETURN(result.objective,
                      SmlqObjective(result.coordinates, *feature_graph, degrees, label_graph,
                                    settings.alpha, observer ? OncePerSecond(watch) : nullptr));
  return result;
}

// Checked by the server: clients would detect collinear anchors only after spending their budget.
absl::Status CheckAnchorCoordinates(const Matrix& anchors) {
  return KabschUmeyama(anchors, anchors).status();
}

}  // namespace privatemail
