#include "client/page/server_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "client/privacy/sampling/exact_sampling.h"
#include "common/base/status_macros.h"
#include "common/embedding/alignment.h"
#include "common/numerics/decompositions.h"

namespace privatemail::client {
namespace {

// Two numbers below n. Whether they are the target's must not depend on the target.
absl::StatusOr<std::vector<uint64_t>> DrawTwo(int64_t n) {
  SecureBits bits;
  return SampleUniform({static_cast<uint64_t>(n), static_cast<uint64_t>(n)}, bits);
}

// The two directions in which points differ most: k x 2.
Matrix PlaneOf(const Matrix& points) {
  const Matrix centred = points.rowwise() - points.colwise().mean();
  const SymmetricEigendecomposition found = DecomposeSymmetric(centred.transpose() * centred);
  return found.eigenvectors.rightCols(std::min<Eigen::Index>(2, points.cols())).rowwise().reverse();
}

nlohmann::json PointsJson(const Matrix& points) {
  nlohmann::json json = nlohmann::json::array();
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    json.push_back({points(i, 0), points.cols() > 1 ? points(i, 1) : 0});
  }
  return json;
}

}  // namespace

absl::StatusOr<nlohmann::json> RowsSeen(const JointResult& joint, const PrivacyCost& cost) {
  const PublicParameters& parameters = joint.scheme->parameters();
  const auto slots = static_cast<int64_t>(parameters.slot_labels.size());
  const Matrix& anchors = joint.server_anchors;
  const Matrix plane = PlaneOf(anchors);
  nlohmann::json releases = nlohmann::json::array();
  const auto add = [&](const Matrix& rows, int64_t slot) {
    PM_ASSIGN_OR_RETURN(const Similarity map,
                        KabschUmeyama(rows.bottomRows(anchors.rows()), anchors));
    releases.push_back({{"own", slot},
                        {"name", parameters.ClassName(slot)},
                        {"points", PointsJson(map.Apply(rows) * plane)}});
    return absl::OkStatus();
  };
  PM_RETURN_IF_ERROR(add(joint.released, joint.classes.front().slot));
  PM_ASSIGN_OR_RETURN(const std::vector<uint64_t> drawn, DrawTwo(slots));
  for (const uint64_t one : drawn) {
    const auto slot = static_cast<int64_t>(one);
    SecureBits bits;
    PM_ASSIGN_OR_RETURN(const Matrix rows, joint.scheme->CoordinatesOfDummy(slot, cost, bits));
    PM_RETURN_IF_ERROR(add(rows, slot));
  }
  return nlohmann::json{{"slots", slots},
                        {"anchors", PointsJson(anchors * plane)},
                        {"releases", std::move(releases)}};
}

absl::StatusOr<nlohmann::json> CellsSeen(const CellsResult& result,
                                         const Eigen::RowVectorXf& features, const CellCost& cost,
                                         int64_t cells) {
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> own,
                      result.scheme->NearestCells(features, cost.partition, /*count=*/1));
  nlohmann::json releases = {{{"own", own[0]}, {"cells", result.cells}}};
  PM_ASSIGN_OR_RETURN(const std::vector<uint64_t> drawn, DrawTwo(cells));
  for (const uint64_t one : drawn) {
    const auto cell = static_cast<int64_t>(one);
    SecureBits bits;
    PM_ASSIGN_OR_RETURN(const auto chosen, result.scheme->ReleaseOfCell(cell, cost, bits));
    releases.push_back({{"own", cell}, {"cells", chosen}});
  }
  return nlohmann::json{{"cells", cells}, {"releases", std::move(releases)}};
}

}  // namespace privatemail::client
