#include "client/schemes/expected_alignment.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/embedding/alignment.h"
#include "common/numerics/neighbors.h"

namespace privatemail::client {
namespace {

// Rows by slot.
std::vector<std::vector<Eigen::Index>> RowsOfSlots(const std::vector<int64_t>& slot_of_row) {
  const int64_t slots = *std::max_element(slot_of_row.begin(), slot_of_row.end()) + 1;
  std::vector<std::vector<Eigen::Index>> rows(static_cast<size_t>(slots));
  for (size_t i = 0; i < slot_of_row.size(); ++i) {
    rows[static_cast<size_t>(slot_of_row[i])].push_back(static_cast<Eigen::Index>(i));
  }
  return rows;
}

Matrix Offsets(const Matrix& rows, const std::vector<Eigen::Index>& members) {
  const Matrix chosen = rows(members, Eigen::all);
  return chosen.rowwise() - RowVector(chosen.colwise().mean());
}

}  // namespace

absl::StatusOr<ExpectedAlignment> ExpectAlignment(const Matrix& rows,
                                                  const std::vector<int64_t>& slot_of_anchor,
                                                  const Matrix& server_anchors,
                                                  const WorkObserver& observer) {
  constexpr Eigen::Index kBlock = 64;  // slots between two calls of the observer
  const Eigen::Index slots = rows.rows() - std::ssize(slot_of_anchor);
  const Matrix anchors = rows.bottomRows(std::ssize(slot_of_anchor));
  PM_ASSIGN_OR_RETURN(const Similarity map, KabschUmeyama(anchors, server_anchors));
  const Matrix placed = map.Apply(rows.topRows(slots));
  int64_t found = 0;
  for (Eigen::Index first = 0; first < slots; first += kBlock) {
    if (observer) PM_RETURN_IF_ERROR(observer());
    const Eigen::Index count = std::min(kBlock, slots - first);
    const auto nearest = NearestRows(placed.middleRows(first, count), server_anchors, /*count=*/1);
    for (Eigen::Index i = 0; i < count; ++i) {
      const int64_t anchor = nearest[static_cast<size_t>(i)].front().row;
      found += slot_of_anchor[static_cast<size_t>(anchor)] == first + i;
    }
  }
  return ExpectedAlignment{
      .recall = static_cast<double>(found) / static_cast<double>(slots),
      .relative_residual = AlignmentTarget(server_anchors).RelativeResidual(map, anchors)};
}

absl::Status CheckAlignment(const ExpectedAlignment& alignment) {
  if (alignment.recall >= kMinExpectedRecall) {
    return alignment.pairing_score.has_value() ? CheckPairing(*alignment.pairing_score)
                                               : absl::OkStatus();
  }
  return FieldError(
      absl::StatusCode::kFailedPrecondition, "expected_recall",
      absl::StrFormat("at least %.0f %%, since the collection's embedding must align with this "
                      "client's",
                      100 * kMinExpectedRecall),
      absl::StrFormat("%.0f %%: without any noise, the slots of so many classes land at their "
                      "class (residual of the anchors %.3g)",
                      100 * alignment.recall, alignment.relative_residual));
}

double PairingScore(const Matrix& own, const Matrix& server,
                    const std::vector<int64_t>& slot_of_anchor) {
  double sum = 0;
  double variance = 0;
  for (const std::vector<Eigen::Index>& members : RowsOfSlots(slot_of_anchor)) {
    if (members.size() < 2) continue;
    const Matrix a = Offsets(own, members);
    const Matrix b = Offsets(server, members);
    sum += a.cwiseProduct(b).sum();
    const Matrix products = (a.transpose() * a).cwiseProduct(b.transpose() * b);
    variance += products.sum() / static_cast<double>(a.rows() - 1);
  }
  return variance > 0 ? sum / std::sqrt(variance) : 0;
}

absl::Status CheckPairing(double score) {
  if (score >= kMinPairingScore) return absl::OkStatus();
  return FieldError(
      absl::StatusCode::kFailedPrecondition, "own_anchors",
      absl::StrFormat("the collection's anchors in their order, whose places within the classes "
                      "agree with the server's by at least %.1f standard deviations",
                      kMinPairingScore),
      absl::StrFormat("other rows: they agree by %.1f", score));
}

}  // namespace privatemail::client
