#include "common/index/exact_index.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace privatemail {
namespace {

// Rows of a block whose copies stay in cache while all queries are compared with them.
constexpr int64_t kScanRows = 512;

Matrix Select(const Matrix& points, const std::vector<int64_t>& rows) {
  Matrix selected(static_cast<Eigen::Index>(rows.size()), points.cols());
  for (size_t i = 0; i < rows.size(); ++i) {
    selected.row(static_cast<Eigen::Index>(i)) = points.row(rows[i]);
  }
  return selected;
}

}  // namespace

FlatScan::FlatScan(const Matrix& points) : points_(points) {
  if (!ScreenedPoints::CanHold(points)) return;
  copies_.emplace(points);
  for (int64_t first = 0; first < points.rows(); first += kScanRows) {
    std::vector<int64_t> rows(
        static_cast<size_t>(std::min<int64_t>(kScanRows, points.rows() - first)));
    std::iota(rows.begin(), rows.end(), first);
    copies_->AddGroup(std::move(rows));
  }
}

std::vector<std::vector<Neighbor>> FlatScan::Search(const Matrix& queries, int64_t count,
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

ExactIndex::ExactIndex(Matrix points) : points_(std::move(points)) {
  if (size() > 0 && points_.cols() <= RTree::kMaxDimensions) {
    tree_.emplace(points_);
  } else {
    scan_.emplace(points_);
  }
}

std::vector<std::vector<Neighbor>> ExactIndex::Search(const Matrix& queries, int64_t count,
                                                      const std::vector<bool>* hidden) const {
  return tree_ ? tree_->Search(queries, count, hidden) : scan_->Search(queries, count, hidden);
}

ExactIndex::Part::Part(const ExactIndex& whole, std::vector<int64_t> rows)
    : rows_(std::move(rows)), points_(Select(whole.points(), rows_)), scan_(points_) {}

std::vector<std::vector<Neighbor>> ExactIndex::Part::Search(const Matrix& queries,
                                                            int64_t count) const {
  std::vector<std::vector<Neighbor>> nearest = scan_.Search(queries, count, nullptr);
  for (std::vector<Neighbor>& of_query : nearest) {
    for (Neighbor& neighbor : of_query) neighbor.row = rows_[static_cast<size_t>(neighbor.row)];
  }
  return nearest;
}

}  // namespace privatemail
