// Exact nearest neighbours over a gallery's coordinates.
#ifndef PRIVATEMAIL_COMMON_INDEX_EXACT_INDEX_H_
#define PRIVATEMAIL_COMMON_INDEX_EXACT_INDEX_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/neighbors.h"
#include "common/index/scan.h"
#include "common/index/tree.h"

namespace privatemail {

// Holds n x k coordinates, rows ordered by item id, in a tree where k is small, to be scanned where
// it is not. Both find the same. Immutable and thread-safe.
class ExactIndex {
 public:
  explicit ExactIndex(Matrix points);
  ExactIndex(const ExactIndex&) = delete;
  ExactIndex& operator=(const ExactIndex&) = delete;

  Eigen::Index size() const { return points_.rows(); }
  const Matrix& points() const { return points_; }
  // Whether a search looks at a few of the rows only.
  bool has_tree() const { return tree_.has_value(); }

  // For each query (m x k, finite) the min(count, n) rows nearest to it, nearest first; ties by the
  // smaller row, which is the smaller id. hidden: rows that are not found (n, or null for none).
  // About O(m count log n) time with a tree, O(m n k) without, where several queries at once take
  // less than one after the other.
  std::vector<std::vector<Neighbor>> Search(const Matrix& queries, int64_t count,
                                            const std::vector<bool>* hidden = nullptr) const;

  // Some of the rows, ascending, copied together once for all the searches of a request.
  class Part {
   public:
    Part(const ExactIndex& whole, std::vector<int64_t> rows);
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    Eigen::Index size() const { return points_.rows(); }
    // As ExactIndex::Search; rows are those of the whole index.
    std::vector<std::vector<Neighbor>> Search(const Matrix& queries, int64_t count) const;

   private:
    std::vector<int64_t> rows_;
    Matrix points_;
    Scan scan_;
  };

 private:
  Matrix points_;
  std::optional<RTree> tree_;  // one of both
  std::optional<Scan> scan_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_EXACT_INDEX_H_
