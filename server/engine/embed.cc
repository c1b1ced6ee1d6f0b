#include "server/engine/embed.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/alignment.h"
#include "common/embedding/label_graph.h"

namespace privatemail::server {
namespace {

std::vector<int32_t> Concatenate(const std::vector<int32_t>& first,
                                 const std::vector<int32_t>& second) {
  std::vector<int32_t> all = first;
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

absl::StatusOr<EmbeddedRows> Iterate(const PublicParameters& parameters, const AffinityPlan& plan,
                                     std::shared_ptr<const PointSource> rows,
                                     const LabelGraph& label_graph, const StepObserver& observer,
                                     const AffinityOperator* feature_graph = nullptr) {
  const EmbeddingSettings& settings = parameters.settings;
  const RowShare& share = *label_graph.share();
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
      SmlqIterate(DeterministicStart(Fingerprint(parameters), share.rows(), settings.embedding_dim,
                                     settings.start_stddev, share.first_row()),
                  *feature_graph, label_graph, settings.alpha, settings.steps, settings.normalise,
                  observer, &degrees));
  const ProductObserver watch = [&](double) { return observer(settings.steps, settings.steps); };
  PM_ASSIGN_OR_RETURN(result.objective,
                      SmlqObjective(result.coordinates, *feature_graph, degrees, label_graph,
                                    settings.alpha, observer ? OncePerSecond(watch) : nullptr));
  return result;
}

}  // namespace

AffinityPlan PlanEmbedding(const PublicParameters& parameters, Eigen::Index rows) {
  return PlanAffinity({.rows = rows,
                       .cols = parameters.feature_dim,
                       .kernel_denominator = parameters.settings.KernelDenominator(),
                       .columns = parameters.settings.embedding_dim,
                       .most_squared_length = kUnitSquaredLength,
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
  const AffinityPlan plan = PlanEmbedding(parameters, rows->rows());
  const LabelGraph label_graph(labels, parameters.settings.label_graph,
                               parameters.settings.KernelDenominator());
  return Iterate(parameters, plan, std::move(rows), label_graph, observer, feature_graph);
}

absl::StatusOr<EmbeddedRows> EmbedShare(const PublicParameters& parameters,
                                        const std::shared_ptr<const RowShare>& share,
                                        std::shared_ptr<const PointSource> rows,
                                        const std::vector<int32_t>& labels,
                                        const std::map<int32_t, int64_t>& rows_of_label,
                                        const StepObserver& observer) {
  const AffinityPlan plan = PlanEmbedding(parameters, share->groups().rows());
  PM_RETURN_IF_ERROR(CheckShareable(plan));
  const LabelGraph label_graph(labels, rows_of_label, share, parameters.settings.label_graph,
                               parameters.settings.KernelDenominator());
  return Iterate(parameters, plan, std::move(rows), label_graph, observer);
}

absl::StatusOr<Embedding> Embed(const PublicParameters& parameters, const Anchors& anchors,
                                Gallery gallery, const StepObserver& observer) {
  PM_ASSIGN_OR_RETURN(UnitPoints rows,
                      UnitPoints::Create(std::move(gallery.features), anchors.features));
  return Embed(parameters, anchors, std::move(gallery),
               std::make_shared<UnitPoints>(std::move(rows)), observer);
}

absl::StatusOr<Embedding> Embed(const PublicParameters& parameters, const Anchors& anchors,
                                Gallery gallery, std::shared_ptr<const PointSource> points,
                                const StepObserver& observer,
                                const AffinityOperator* feature_graph) {
  const auto items = static_cast<Eigen::Index>(gallery.ids.size());
  if (items == 0) {
    return absl::FailedPreconditionError("the collection has no items to embed: ingest some first");
  }
  // The features, which are the largest of all, are gone before the results are copied.
  PM_ASSIGN_OR_RETURN(EmbeddedRows rows, EmbedRows(parameters, std::move(points),
                                                   Concatenate(gallery.labels, anchors.labels),
                                                   observer, feature_graph));

  Embedding embedding;
  embedding.plan = std::move(rows.plan.why);
  embedding.items_version = gallery.version;
  embedding.collection = gallery.collection;
  embedding.objective = rows.objective;
  embedding.ids = std::move(gallery.ids);
  embedding.labels = std::move(gallery.labels);
  embedding.payloads = std::move(gallery.payloads);
  embedding.coordinates = rows.coordinates.topRows(items);
  embedding.anchor_coordinates = rows.coordinates.bottomRows(rows.coordinates.rows() - items);
  PM_RETURN_IF_ERROR(CheckAnchorCoordinates(embedding.anchor_coordinates));
  return embedding;
}

// Nothing can be aligned with anchors on a line, and each query would learn so only after it has
// spent its budget.
absl::Status CheckAnchorCoordinates(const Matrix& anchors) {
  return KabschUmeyama(anchors, anchors, /*with_scale=*/true).status();
}

}  // namespace privatemail::server
