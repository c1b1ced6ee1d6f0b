// Exact nearest neighbours by R-tree or k-d tree.
#ifndef PRIVATEMAIL_COMMON_INDEX_EXACT_INDEX_H_
#define PRIVATEMAIL_COMMON_INDEX_EXACT_INDEX_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/matrix.h"
#include "common/index/kd_tree.h"
#include "common/index/r_tree.h"
#include "common/numerics/neighbors.h"

namespace privatemail {

// An index over n x k coordinates, rows ordered by item id: an R-tree if k is small, otherwise a
// k-d tree, with the same results. Immutable and thread-safe.
//
// In a trial of November 2026, which no benchmark repeats, since it is no dependency, nanoflann took
// .9 to 2.8 times the R-tree's time; of the k-d tree's .2 to .8 times on embeddings with the default
// settings, but 1.9 to 6 times with the settings `distance` and `random` and on points without
// clusters.
class ExactIndex {
 public:
  explicit ExactIndex(Matrix points);
  ExactIndex(const ExactIndex&) = delete;
  ExactIndex& operator=(const ExactIndex&) = delete;

  Eigen::Index size() const { return points_.rows(); }
  const Matrix& points() const { return points_; }
  // True with an R-tree: a search visits a few rows and takes microseconds, wherever the points and
  // queries are, while few rows are hidden.
  bool IsFast() const { return r_tree_.has_value(); }
  // "exact, R-tree" or "exact, k-d tree".
  std::string description() const { return IsFast() ? "exact, R-tree" : "exact, k-d tree"; }

  // The min(count, n) rows nearest to each query (m x k, finite), nearest first; ties by the
  // smaller row, i.e. id. hidden: n flags of rows to leave out, or null. About O(m count log n)
  // time with an R-tree, at most O(m n k) with a k-d tree, less a query for several queries.
  std::vector<std::vector<Neighbor>> Search(const Matrix& queries, int64_t count,
                                            const std::vector<bool>* hidden = nullptr) const;

  // An index of some rows (ascending), made once for all searches of a request. The whole index
  // must outlive it. O(n + rows k) time.
  class Part {
   public:
    Part(const ExactIndex& whole, const std::vector<int64_t>& rows);

    Eigen::Index size() const { return size_; }
    // As ExactIndex::Search; returns rows of the whole index.
    std::vector<std::vector<Neighbor>> Search(const Matrix& queries, int64_t count) const;

   private:
    Eigen::Index size_;
    KdTree tree_;
  };

 private:
  Matrix points_;
  std::optional<RTree> r_tree_;    // either this
  std::optional<KdTree> kd_tree_;  // or this
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_EXACT_INDEX_H_
