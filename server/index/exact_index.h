// Exact nearest neighbours over a gallery's coordinates.
#ifndef PRIVATEMAIL_SERVER_INDEX_EXACT_INDEX_H_
#define PRIVATEMAIL_SERVER_INDEX_EXACT_INDEX_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/neighbors.h"
#include "server/index/tree.h"

namespace privatemail {

// Holds n x k coordinates, rows ordered by item id: in a tree where k is small, as they are, to be
// scanned, where it is not. Both find the same. Immutable and thread-safe.
class ExactIndex {
 public:
  explicit ExactIndex(Matrix points);

  Eigen::Index size() const { return points_.rows(); }
  const Matrix& points() const { return points_; }
  // Whether a search looks at a few of the rows only.
  bool has_tree() const { return tree_ != nullptr; }

  // The min(count, n) rows nearest to `query` (k finite values), nearest first; ties by the smaller
  // row, which is the smaller id. hidden: rows that are not found (n, or null for none). About
  // O(count log n) time with a tree, O(n k) without.
  std::vector<Neighbor> Search(const RowVector& query, int64_t count,
                               const std::vector<bool>* hidden = nullptr) const;

  // Some of the rows, ascending, copied together once for all the searches of a request.
  class Part {
   public:
    Eigen::Index size() const { return points_.rows(); }
    // As ExactIndex::Search; rows are those of the whole index.
    std::vector<Neighbor> Search(const RowVector& query, int64_t count) const;

   private:
    friend class ExactIndex;
    std::vector<int64_t> rows_;
    Matrix points_;
  };
  Part Restrict(std::vector<int64_t> rows) const;

 private:
  Matrix points_;
  std::unique_ptr<const Tree> tree_;  // null: scan
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_INDEX_EXACT_INDEX_H_
