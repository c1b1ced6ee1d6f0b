#include "server/index/exact_index.h"

#include <utility>

namespace privatemail {

ExactIndex::ExactIndex(Matrix points) : points_(std::move(points)) {
  if (size() > 0 && points_.cols() <= Tree::kMostDimensions) {
    tree_ = std::make_unique<Tree>(points_);
  }
}

std::vector<Neighbor> ExactIndex::Search(const RowVector& query, int64_t count,
                                         const std::vector<bool>* hidden) const {
  if (tree_) return tree_->Search(query, count, hidden);
  return NearestRows(query, points_, count, hidden).front();
}

ExactIndex::Part ExactIndex::Restrict(std::vector<int64_t> rows) const {
  Part part;
  part.points_.resize(static_cast<Eigen::Index>(rows.size()), points_.cols());
  for (size_t i = 0; i < rows.size(); ++i) {
    part.points_.row(static_cast<Eigen::Index>(i)) = points_.row(rows[i]);
  }
  part.rows_ = std::move(rows);
  return part;
}

std::vector<Neighbor> ExactIndex::Part::Search(const RowVector& query, int64_t count) const {
  std::vector<Neighbor> nearest = NearestRows(query, points_, count).front();
  for (Neighbor& neighbor : nearest) neighbor.row = rows_[static_cast<size_t>(neighbor.row)];
  return nearest;
}

}  // namespace privatemail
