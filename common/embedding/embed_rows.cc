#include "common/embedding/embed_rows.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/embedding/alignment.h"
#include "common/embedding/label_graph.h"

namespace privatemail {
namespace {

// Labels of rows without classes; alpha is 0 then.
std::vector<int32_t> OneClass(Eigen::Index rows) {
  return std::vector<int32_t>(static_cast<size_t>(rows), 0);
}

// Embeds the local rows of a share. EmbedRows and EmbedShare explain the arguments.
absl::StatusOr<EmbeddedRows> Iterate(const PublicParameters& parameters, const AffinityPlan& plan,
                                     const std::shared_ptr<const RowShare>& share,
                                     std::shared_ptr<const PointSource> rows,
                                     const std::vector<int32_t>& labels,
                                     const std::map<int32_t, int64_t>& rows_of_label,
                                     const StepObserver& observer,
                                     const AffinityOperator* feature_graph) {
  const EmbeddingSettings& settings = parameters.settings;
  const LabelGraph label_graph =
      parameters.HasClasses()
          ? LabelGraph(labels, rows_of_label, share, settings.label_graph,
                       settings.KernelDenominator())
          : LabelGraph(OneClass(rows->rows()), {{0, share->groups().rows()}}, share,
                       settings.label_graph, settings.KernelDenominator());
  EmbeddedRows result;
  result.plan = plan;
  std::unique_ptr<const AffinityOperator> made;
  if (feature_graph == nullptr) {
    made = MakeAffinity(plan, std::move(rows), settings.KernelDenominator(), label_graph.share());
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

}  // namespace

Matrix PublicStart(const PublicParameters& parameters, const LabelGraph& label_graph) {
  const EmbeddingSettings& settings = parameters.settings;
  if (settings.start == StartKind::kClasses) {
    return settings.start_stddev * label_graph.CodeOfRows(settings.embedding_dim);
  }
  const RowShare& share = *label_graph.share();
  return DeterministicStart(Fingerprint(parameters), share.rows(), settings.embedding_dim,
                            settings.start_stddev, share.first_row());
}

AffinityPlan PlanEmbedding(const PublicParameters& parameters, Eigen::Index rows) {
  return PlanAffinity({.rows = rows,
                       .cols = parameters.feature_dim,
                       .kernel_denominator = parameters.settings.KernelDenominator(),
                       .columns = parameters.settings.embedding_dim,
                       .max_squared_length = kUnitSquaredLength,
                       .tolerance = kEmbeddingTolerance});
}

absl::Status CheckShareable(const AffinityPlan& plan) {
  if (plan.kind == AffinityPlan::Kind::kFactored) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("processes cannot share these rows, expected a plan with a polynomial, got ",
                   plan.why, "; a daemon's build embeds them"));
}

absl::StatusOr<EmbeddedRows> EmbedRows(const PublicParameters& parameters,
                                       std::shared_ptr<const PointSource> rows,
                                       const std::vector<int32_t>& labels,
                                       const StepObserver& observer,
                                       const AffinityOperator* feature_graph) {
  const Eigen::Index count = rows->rows();
  return Iterate(parameters, PlanEmbedding(parameters, count), AllRows(count), std::move(rows),
                 labels, CountLabels(labels), observer, feature_graph);
}

absl::StatusOr<EmbeddedRows> EmbedShare(const PublicParameters& parameters,
                                        const std::shared_ptr<const RowShare>& share,
                                        std::shared_ptr<const PointSource> rows,
                                        const std::vector<int32_t>& labels,
                                        const std::map<int32_t, int64_t>& rows_of_label,
                                        const StepObserver& observer) {
  const AffinityPlan plan = PlanEmbedding(parameters, share->groups().rows());
  PM_RETURN_IF_ERROR(CheckShareable(plan));
  return Iterate(parameters, plan, share, std::move(rows), labels, rows_of_label, observer,
                 /*feature_graph=*/nullptr);
}

// Checked by the server: clients would detect collinear anchors only after spending their budget.
absl::Status CheckAnchorCoordinates(const Matrix& anchors) {
  return KabschUmeyama(anchors, anchors).status();
}

}  // namespace privatemail
