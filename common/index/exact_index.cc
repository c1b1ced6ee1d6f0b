#include "common/index/exact_index.h"

#include <utility>

namespace privatemail {
namespace {

Matrix Select(const Matrix& points, const std::vector<int64_t>& rows) {
  Matrix selected(static_cast<Eigen::Index>(rows.size()), points.cols());
  for (size_t i = 0; i < rows.size(); ++i) {
    selected.row(static_cast<Eigen::Index>(i)) = points.row(rows[i]);
  }
  return selected;
}

}  // namespace

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
