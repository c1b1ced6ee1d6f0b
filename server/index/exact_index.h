// Exact nearest neighbours over a gallery's coordinates.
#ifndef PRIVATEMAIL_SERVER_INDEX_EXACT_INDEX_H_
#define PRIVATEMAIL_SERVER_INDEX_EXACT_INDEX_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/neighbors.h"

namespace privatemail {

// Holds n x k coordinates, rows ordered by item id, and scans all of them. Immutable and
// thread-safe.
class ExactIndex {
 public:
  explicit ExactIndex(Matrix points);

  Eigen::Index size() const { return points_.rows(); }

  // The min(count, n) rows nearest to `query` (k finite values), nearest first; ties by the smaller
  // row, which is the smaller id. O(n k) time.
  std::vector<Neighbor> Search(const RowVector& query, int64_t count) const;

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
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_INDEX_EXACT_INDEX_H_
