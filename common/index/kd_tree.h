// A k-d tree with bounding boxes, for points of many coordinates.
#ifndef PRIVATEMAIL_COMMON_INDEX_KD_TREE_H_
#define PRIVATEMAIL_COMMON_INDEX_KD_TREE_H_

#include <cstdint>
#include <vector>

#include "common/base/matrix.h"
#include "common/index/screened_points.h"
#include "common/numerics/neighbors.h"

namespace privatemail {

// Returns the rows and bits of NearestRows; clustered points are searched in a small share of the
// time, unclustered ones in about that of a scan. Leaves hold kLeafRows points, so that boxes cost
// little beside them, and are scanned for all queries at once. Immutable, thread-safe.
class KdTree {
 public:
  static constexpr int64_t kLeafRows = 256;

  // points: n x k, finite; must outlive this. rows: those to search, kLeafRows a leaf. O(rows k)
  // time, 4.2 k + 9 bytes a row.
  KdTree(const Matrix& points, const std::vector<int64_t>& rows);

  // All rows, neighbours close together. O(n log n) time, 24 bytes a row for the moment.
  static std::vector<int64_t> LeafOrder(const Matrix& points);
  // Some of this tree's rows (ascending) in the order of its leaves.
  std::vector<int64_t> LeafOrder(const std::vector<int64_t>& rows) const;

  // Returns what NearestRows does among the tree's rows.
  std::vector<std::vector<Neighbor>> Search(const Matrix& queries, int64_t count,
                                            const std::vector<bool>* skipped) const;

 private:
  // A node: leaves [first, last). Nodes are numbered in preorder: the left child follows its
  // parent.
  struct Node {
    int64_t number;
    int64_t first;
    int64_t last;
  };

  // A query and what it has found.
  struct Searcher {
    ScreenedPoints::Query query;
    TopK nearest;
    double limit;       // squared distances of boxes above this are pruned
    int64_t seed = -1;  // a node whose leaves were scanned already
  };
  using Searchers = std::vector<Searcher*>;

  static Node Left(const Node& node);
  static Node Right(const Node& node);
  Node Root() const { return {0, 0, points_.groups()}; }
  double Bound(const Node& node, const RowVector& scaled) const;
  void ScanLeaves(int64_t first, int64_t last, Searcher* searcher) const;
  BoundingBox SetBoxes(const Node& node, const std::vector<BoundingBox>& leaves);
  void Seed(Searcher* searcher) const;
  void Visit(const Node& node, const Searchers& searchers) const;

  ScreenedPoints points_;  // a group a leaf
  // Boxes around Scaled points: nodes x k.
  Matrix low_;
  Matrix high_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_KD_TREE_H_
