// Exact nearest neighbours by R-tree or blocked scan.
#ifndef PRIVATEMAIL_COMMON_INDEX_EXACT_INDEX_H_
#define PRIVATEMAIL_COMMON_INDEX_EXACT_INDEX_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/matrix.h"
#include "common/index/r_tree.h"
#include "common/index/screened_points.h"
#include "common/numerics/neighbors.h"

namespace privatemail {

// A scan of all points for several queries at once, mostly in single precision and in cache.
// Returns the rows and bits of NearestRows in O(m n k) time. Immutable, thread-safe.
class FlatScan {
 public:
  // points: n x k, finite; must outlive this. O(n k) time, 4 k + 8 bytes a row.
  explicit FlatScan(const Matrix& points);

  // As NearestRows.
  std::vector<std::vector<Neighbor>> Search(const Matrix& queries, int64_t count,
                                            const std::vector<bool>* skipped) const;

 private:
  const Matrix& points_;
  std::optional<ScreenedPoints> copies_;  // nullopt if single precision cannot represent them
};

// An index over n x k coordinates, rows ordered by item id: an R-tree if k is small, otherwise a
// scan, with the same results. Immutable and thread-safe.
class ExactIndex {
 public:
  explicit ExactIndex(Matrix points);
  ExactIndex(const ExactIndex&) = delete;
  ExactIndex& operator=(const ExactIndex&) = delete;

  Eigen::Index size() const { return points_.rows(); }
  const Matrix& points() const { return points_; }
  // Whether searches visit only a few rows.
  bool has_tree() const { return tree_.has_value(); }

  // The min(count, n) rows nearest to each query (m x k, finite), nearest first; ties by the
  // smaller row, i.e. id. hidden: n flags of rows to leave out, or null. About O(m count log n)
  // time with a tree, else O(m n k), less a query for several queries.
  std::vector<std::vector<Neighbor>> Search(const Matrix& queries, int64_t count,
                                            const std::vector<bool>* hidden = nullptr) const;

  // A copy of some rows (ascending), made once for all searches of a request.
  class Part {
   public:
    Part(const ExactIndex& whole, std::vector<int64_t> rows);
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    Eigen::Index size() const { return points_.rows(); }
    // As ExactIndex::Search; returns rows of the whole index.
    std::vector<std::vector<Neighbor>> Search(const Matrix& queries, int64_t count) const;

   private:
    std::vector<int64_t> rows_;
    Matrix points_;
    FlatScan scan_;
  };

 private:
  Matrix points_;
  std::optional<RTree> tree_;     // either this
  std::optional<FlatScan> scan_;  // or this
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_EXACT_INDEX_H_
