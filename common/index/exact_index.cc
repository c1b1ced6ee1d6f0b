#include "common/index/exact_index.h"

#include <utility>

namespace privatemail {

ExactIndex::ExactIndex(Matrix points) : points_(std::move(points)) {
  if (size() > 0 && points_.cols() <= RTree::kMaxDimensions) {
    r_tree_.emplace(points_);
  } else {
    kd_tree_.emplace(points_, KdTree::LeafOrder(points_));
  }
}

std::vector<std::vector<Neighbor>> ExactIndex::Search(const Matrix& queries, int64_t count,
                                                      const std::vector<bool>* hidden) const {
  return r_tree_ ? r_tree_->Search(queries, count, hidden)
                 : kd_tree_->Search(queries, count, hidden);
}

ExactIndex::Part::Part(const ExactIndex& whole, const std::vector<int64_t>& rows)
    : size_(std::ssize(rows)),
      tree_(whole.points(), whole.kd_tree_ ? whole.kd_tree_->LeafOrder(rows) : rows) {}

std::vector<std::vector<Neighbor>> ExactIndex::Part::Search(const Matrix& queries,
                                                            int64_t count) const {
  return tree_.Search(queries, count, nullptr);
}

}  // namespace privatemail
