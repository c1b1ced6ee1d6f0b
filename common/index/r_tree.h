// An R-tree over a few coordinates.
#ifndef PRIVATEMAIL_COMMON_INDEX_TREE_H_
#define PRIVATEMAIL_COMMON_INDEX_TREE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/neighbors.h"

namespace privatemail {

// Finds what NearestRows finds, bit for bit, in about logarithmic time. Immutable, thread-safe.
class RTree {
 public:
  // More coordinates than these are scanned faster (tests/benchmarks/index_benchmark.cc).
  static constexpr Eigen::Index kMaxDimensions = 4;

  // points: n >= 1 rows, finite, of at most kMaxDimensions. O(n log n) time; about 12 + 9 k bytes a
  // row, and 20 + 16 k while it is made; rows at one place count once in a search.
  explicit RTree(const Matrix& points);
  ~RTree();
  RTree(const RTree&) = delete;
  RTree& operator=(const RTree&) = delete;

  // As NearestRows.
  std::vector<std::vector<Neighbor>> Search(const Matrix& queries, int64_t count,
                                            const std::vector<bool>* skipped) const;

 private:
  class Searcher;
  template <int kDimensions>
  class SearcherOf;

  std::unique_ptr<const Searcher> searcher_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_TREE_H_
