#include "client/schemes/cells/cell_scheme.h"

#include <utility>

#include "client/schemes/cells/cell_steps.h"
#include "client/schemes/published_collection.h"
#include "client/schemes/request_checks.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/offered_schemes.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client {
namespace {

// point: 1 x d.
std::vector<int64_t> NearestTo(const Matrix& point, const Matrix& centroids, int64_t count) {
  std::vector<int64_t> cells;
  const auto nearest = NearestRows(point, centroids, count);
  for (const Neighbor& one : nearest.front()) cells.push_back(one.row);
  return cells;
}

}  // namespace

absl::StatusOr<CellScheme> CellScheme::Create(PublicParameters parameters, const Anchors& anchors) {
  PM_RETURN_IF_ERROR(CheckHasCells(parameters.collection_uuid, parameters));
  PM_RETURN_IF_ERROR(CheckAnchors(parameters, anchors));
  PM_ASSIGN_OR_RETURN(const Matrix unit_anchors, UnitRows("anchors", anchors.features));
  std::vector<Matrix> centroids;
  for (const CellPartition& partition : parameters.cell_partitions) {
    centroids.push_back(CellCentroids(partition, unit_anchors));
  }
  return CellScheme(std::move(parameters), std::move(centroids));
}

absl::StatusOr<std::vector<int64_t>> CellScheme::NearestCells(const Eigen::RowVectorXf& features,
                                                              int64_t partition,
                                                              int64_t count) const {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("partition", partition, 0, std::ssize(centroids_) - 1));
  const Matrix& centroids = centroids_[static_cast<size_t>(partition)];
  PM_RETURN_IF_ERROR(CheckColumns("query", centroids.cols(), features.size()));
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("query", FloatMatrix(features)));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("count", count, 1, centroids.rows()));
  return NearestTo(unit, centroids, count);
}

absl::StatusOr<CellDraw> PrepareCellDraw(const CellScheme& scheme,
                                         const Eigen::RowVectorXf& features, const CellCost& cost) {
  const std::vector<CellPartition>& partitions = scheme.parameters().cell_partitions;
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("partition", cost.partition, 0, std::ssize(partitions) - 1));
  const int64_t cells = partitions[static_cast<size_t>(cost.partition)].cells;
  PM_ASSIGN_OR_RETURN(
      CellMechanism mechanism,
      CellMechanism::Create(
          {.cells = cells, .ask = cost.ask, .focus = cost.focus, .epsilon = cost.epsilon}));
  PM_ASSIGN_OR_RETURN(std::vector<int64_t> best,
                      scheme.NearestCells(features, cost.partition, cost.focus));
  return CellDraw{.mechanism = std::move(mechanism), .best = std::move(best)};
}

absl::StatusOr<CellRelease> CellScheme::Release(const Eigen::RowVectorXf& features,
                                                const CellCost& cost, const ChargeFunction& charge,
                                                BitSource& bits) const {
  PM_ASSIGN_OR_RETURN(const CellDraw draw, PrepareCellDraw(*this, features, cost));
  const Guarantee& guarantee = draw.mechanism.guarantee();
  PM_RETURN_IF_ERROR(charge(guarantee));
  absl::StatusOr<std::vector<int64_t>> chosen = draw.mechanism.Choose(draw.best, bits);
  if (!chosen.ok()) return ChargedWithoutRelease(chosen.status());
  return CellRelease{.cells = *std::move(chosen), .guarantee = guarantee};
}

}  // namespace privatemail::client
