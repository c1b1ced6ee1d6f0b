#include "client/simulation/trial.h"

#include <malloc.h>

#include <iterator>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/alignment.h"
#include "common/embedding/embed_rows.h"
#include "common/embedding/public_parameters.h"
#include "common/embedding/tiled_affinity.h"
#include "common/numerics/point_source.h"

namespace privatemail::client::simulation {
namespace {

constexpr char kUuid[] = "00000000-0000-4000-8000-000000000000";  // of no collection of a server

constexpr Eigen::Index kMaxCachedRows = 10'000;  // more are computed again for every product

std::string Describe(const EmbeddingSettings& s) {
  return absl::StrCat(
      "kernel_bandwidth ", FormatExact(s.kernel_bandwidth), "\nalpha ", FormatExact(s.alpha),
      "\nkernel ", static_cast<int>(s.kernel), "\nlabel_graph ", static_cast<int>(s.label_graph),
      "\nembedding_dim ", s.embedding_dim, "\nsteps ", s.steps, "\nnormalise ", s.normalise,
      "\nstart_stddev ", FormatExact(s.start_stddev), "\nstart ", static_cast<int>(s.start));
}

Anchors AnchorsOf(const Split& split) {
  return {.features = split.anchors.features.cast<float>(), .labels = split.anchors.labels};
}

absl::Status CheckRows(const std::string& field, const LabelledRows& rows, int64_t columns) {
  if (rows.features.rows() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(field, " must have rows, but has none"));
  }
  PM_RETURN_IF_ERROR(CheckColumns(field, columns, rows.features.cols()));
  if (std::ssize(rows.labels) != rows.features.rows()) {
    return absl::InvalidArgumentError(absl::StrCat(field, " must have a label for each of ",
                                                   rows.features.rows(), " rows, but has ",
                                                   rows.labels.size()));
  }
  return UnitRows(field, rows.features).status();
}

absl::Status Check(const Split& split, int64_t k) {
  const int64_t columns = split.anchors.features.cols();
  PM_RETURN_IF_ERROR(CheckRows("anchors", split.anchors, columns));
  PM_RETURN_IF_ERROR(CheckRows("gallery", split.gallery, columns));
  PM_RETURN_IF_ERROR(CheckRows("targets", split.targets, columns));
  const std::set<int32_t> classes(split.anchors.labels.begin(), split.anchors.labels.end());
  if (classes.size() < 2) {
    return absl::InvalidArgumentError("anchors must have 2 classes or more, but have one");
  }
  for (const int32_t label : split.targets.labels) {
    if (classes.contains(label)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("targets must be of the anchors' classes, but one has label ", label));
  }
  return CheckIntegerBetween("k", k, 1, split.gallery.features.rows());
}

}  // namespace

std::vector<std::vector<int64_t>> RowsOf(const std::vector<std::vector<Neighbor>>& neighbors) {
  std::vector<std::vector<int64_t>> rows;
  for (const std::vector<Neighbor>& of_query : neighbors) {
    std::ranges::transform(of_query, std::back_inserter(rows.emplace_back()), &Neighbor::row);
  }
  return rows;
}

std::vector<std::vector<int64_t>> NearestOf(const Matrix& queries, const Matrix& points,
                                            int64_t k) {
  return RowsOf(NearestRows(queries, points, k));
}

std::vector<int32_t> JoinLabels(std::initializer_list<std::vector<int32_t>> parts) {
  std::vector<int32_t> labels;
  for (const std::vector<int32_t>& part : parts) {
    labels.insert(labels.end(), part.begin(), part.end());
  }
  return labels;
}

Trial::Trial(Split split, int64_t k, uint64_t seed)
    : split_(std::move(split)),
      k_(k),
      seed_(seed),
      nearest_(NearestOf(split_.targets.features, split_.gallery.features, k)) {}

absl::StatusOr<std::shared_ptr<const Trial>> Trial::Create(Split split, int64_t k, uint64_t seed) {
  PM_RETURN_IF_ERROR(Check(split, k));
  return std::shared_ptr<const Trial>(new Trial(std::move(split), k, seed));
}

absl::StatusOr<std::shared_ptr<const FixedRows>> Trial::AnchorGraph(double denominator) const {
  using Result = absl::StatusOr<std::shared_ptr<const FixedRows>>;
  return graphs_of_anchors_.Get(denominator, [&]() -> Result {
    PM_ASSIGN_OR_RETURN(Matrix unit, UnitRows("anchors", AnchorsOf(split_).features));
    return FixedRows::Create(std::move(unit), denominator);
  });
}

absl::StatusOr<std::shared_ptr<const AffinityOperator>> Trial::ServerGraph(
    const PublicParameters& parameters) const {
  using Result = absl::StatusOr<std::shared_ptr<const AffinityOperator>>;
  const double denominator = parameters.settings.KernelDenominator();
  const Anchors anchors = AnchorsOf(split_);
  PM_ASSIGN_OR_RETURN(const UnitPoints points,
                      UnitPoints::Create(split_.gallery.features.cast<float>(), anchors.features));
  const auto unit_rows = [&]() -> absl::StatusOr<Matrix> {
    Matrix rows(points.rows(), points.cols());
    PM_RETURN_IF_ERROR(points.Read(0, &rows));
    return rows;
  };
  const AffinityPlan plan = PlanEmbedding(parameters, points.rows());
  if (plan.kind != AffinityPlan::Kind::kTiled) {
    PM_ASSIGN_OR_RETURN(Matrix rows, unit_rows());
    return Result(MakeAffinity(plan, std::make_shared<MatrixPoints>(std::move(rows)), denominator));
  }
  constexpr int kManyProducts = 2;  // so many that it is worth being cached
  return graphs_of_rows_.Get(denominator, [&]() -> Result {
    PM_ASSIGN_OR_RETURN(Matrix rows, unit_rows());
    // Evicted tiles lie in the arenas of many threads, which would keep them.
    ::malloc_trim(0);
    return std::make_shared<const TiledAffinity>(std::move(rows), denominator, kManyProducts,
                                                 kMaxCachedRows);
  });
}

absl::StatusOr<std::shared_ptr<const Scene>> Trial::SceneOf(
    const EmbeddingSettings& settings) const {
  PM_RETURN_IF_ERROR(Validate(settings));
  return scenes_.Get(Describe(settings), [&] { return MakeScene(settings); });
}

absl::StatusOr<std::shared_ptr<const Scene>> Trial::MakeScene(
    const EmbeddingSettings& settings) const {
  const Anchors anchors = AnchorsOf(split_);
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters,
                      MakePublicParameters(kUuid, settings, anchors, {}, "vectors"));
  PM_ASSIGN_OR_RETURN(std::shared_ptr<const FixedRows> fixed,
                      AnchorGraph(settings.KernelDenominator()));
  PM_ASSIGN_OR_RETURN(JointSetting joint,
                      MakeJointSetting(parameters, anchors, {}, std::move(fixed)));
  PM_ASSIGN_OR_RETURN(const std::shared_ptr<const AffinityOperator> graph, ServerGraph(parameters));
  PM_ASSIGN_OR_RETURN(UnitPoints points,
                      UnitPoints::Create(split_.gallery.features.cast<float>(), anchors.features));
  PM_ASSIGN_OR_RETURN(
      const EmbeddedRows rows,
      EmbedRows(parameters, std::make_shared<UnitPoints>(std::move(points)),
                JoinLabels({split_.gallery.labels, anchors.labels}), nullptr, graph.get()));
  const Eigen::Index items = split_.gallery.features.rows();
  Matrix anchor_rows = rows.coordinates.bottomRows(rows.coordinates.rows() - items);
  PM_RETURN_IF_ERROR(CheckAnchorCoordinates(anchor_rows));
  std::shared_ptr<const EmbeddedGallery> embedded(new EmbeddedGallery{
      .items = ExactIndex(rows.coordinates.topRows(items)), .anchors = std::move(anchor_rows)});
  return std::make_shared<const Scene>(
      Scene{.trial = this, .joint = std::move(joint), .embedded = std::move(embedded)});
}

}  // namespace privatemail::client::simulation
