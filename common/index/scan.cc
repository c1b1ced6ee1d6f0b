#include "common/index/scan.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace privatemail {
namespace {

// Their copies stay in fast memory while one query after the other is compared with them.
constexpr int64_t kRowsAtOnce = 512;

}  // namespace

Scan::Scan(const Matrix& points) : points_(points) {
  if (!ScreenedPoints::CanHold(points)) return;
  copies_.emplace(points);
  for (int64_t first = 0; first < points.rows(); first += kRowsAtOnce) {
    std::vector<int64_t> rows(
        static_cast<size_t>(std::min<int64_t>(kRowsAtOnce, points.rows() - first)));
    std::iota(rows.begin(), rows.end(), first);
    copies_->AddGroup(std::move(rows));
  }
}

std::vector<std::vector<Neighbor>> Scan::Search(const Matrix& queries, int64_t count,
                                                const std::vector<bool>* skipped) const {
  if (!copies_) return NearestRows(queries, points_, count, skipped);
  std::vector<ScreenedPoints::Query> prepared;
  std::vector<TopK> nearest;
  for (Eigen::Index q = 0; q < queries.rows(); ++q) {
    prepared.push_back(copies_->Prepare(queries.row(q)));
    nearest.emplace_back(count, skipped);
  }
  for (int64_t group = 0; group < copies_->groups(); ++group) {
    for (size_t q = 0; q < prepared.size(); ++q) copies_->Scan(group, prepared[q], &nearest[q]);
  }
  std::vector<std::vector<Neighbor>> sorted;
  for (TopK& found : nearest) sorted.push_back(found.Sorted());
  return sorted;
}

}  // namespace privatemail
