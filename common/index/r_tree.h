// An R-tree for points of a few coordinates.
#ifndef PRIVATEMAIL_COMMON_INDEX_R_TREE_H_
#define PRIVATEMAIL_COMMON_INDEX_R_TREE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/neighbors.h"

namespace privatemail {

// Returns the rows and bits of NearestRows in about logarithmic time. Immutable, thread-safe.
class RTree {
 public:
  // With more coordinates there is a k-d tree (kd_tree.h).
  static constexpr Eigen::Index kMaxDimensions = 4;

  // points: n >= 1 rows, finite, at most kMaxDimensions columns k. Equal rows are visited once.
  // O(n log n) time. About 8 + 9 k bytes of memory a row, 20 + 16 k during construction.
  explicit RTree(const Matrix& points);
  ~RTree();
  RTree(const RTree&) = delete;
  RTree& operator=(const RTree&) = delete;

  // Returns what NearestRows does.
  std::vector<std::vector<Neighbor>> Search(const Matrix& queries, int64_t count,
                                            const std::vector<bool>* skipped) const;

 private:
  class Searcher;
  template <int kDimensions>
  class SearcherOf;

  std::unique_ptr<const Searcher> searcher_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_R_TREE_H_
