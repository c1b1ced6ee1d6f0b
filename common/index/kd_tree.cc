#include "common/index/kd_tree.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace privatemail {
namespace {

// A row and its coordinate on the side that is split.
struct KeyedRow {
  double key;
  uint32_t row;
};

// By a sample: reading every row on every level would dominate construction.
Eigen::Index WidestSide(const Matrix& points, const KeyedRow* begin, const KeyedRow* end) {
  constexpr ptrdiff_t kSample = 128;
  const ptrdiff_t step = std::max<ptrdiff_t>(1, (end - begin) / kSample);
  std::vector<int64_t> sample;
  for (; begin < end; begin += std::min(step, end - begin)) sample.push_back(begin->row);
  const BoundingBox box = BoundingBox::Around(points, sample);
  Eigen::Index widest = 0;
  (box.high / 2 - box.low / 2).maxCoeff(&widest);
  return widest;
}

// Splits at the middle leaf along the widest side until one leaf is left. Ties by row: leaves of
// coinciding points are in the order of rows.
void SplitRows(const Matrix& points, KeyedRow* begin, KeyedRow* end) {
  const int64_t leaves = (end - begin + KdTree::kLeafRows - 1) / KdTree::kLeafRows;
  if (leaves <= 1) return;
  const Eigen::Index side = WidestSide(points, begin, end);
  for (KeyedRow* one = begin; one < end; ++one) one->key = points(one->row, side);
  KeyedRow* middle = begin + leaves / 2 * KdTree::kLeafRows;
  std::nth_element(begin, middle, end, [](const KeyedRow& a, const KeyedRow& b) {
    return a.key != b.key ? a.key < b.key : a.row < b.row;
  });
  SplitRows(points, begin, middle);
  SplitRows(points, middle, end);
}

}  // namespace

std::vector<int64_t> KdTree::LeafOrder(const Matrix& points) {
  std::vector<KeyedRow> keyed(static_cast<size_t>(points.rows()));
  for (uint32_t row = 0; row < keyed.size(); ++row) keyed[row].row = row;
  SplitRows(points, keyed.data(), keyed.data() + keyed.size());
  std::vector<int64_t> rows;
  rows.reserve(keyed.size());
  for (const KeyedRow& one : keyed) rows.push_back(one.row);
  return rows;
}

KdTree::KdTree(const Matrix& points, const std::vector<int64_t>& rows)
    : points_(points, BoundingBox::Around(points, rows)) {
  std::vector<BoundingBox> leaves;
  for (auto begin = rows.begin(); begin != rows.end();) {
    const auto end = begin + std::min<int64_t>(kLeafRows, rows.end() - begin);
    std::vector<int64_t> leaf(begin, end);
    std::sort(leaf.begin(), leaf.end());
    leaves.push_back(points_.AddGroup(std::move(leaf)));
    begin = end;
  }
  if (leaves.empty()) return;
  low_.resize(2 * std::ssize(leaves) - 1, points.cols());
  high_.resize(low_.rows(), points.cols());
  SetBoxes(Root(), leaves);
}

std::vector<int64_t> KdTree::LeafOrder(const std::vector<int64_t>& rows) const {
  std::vector<bool> wanted(static_cast<size_t>(rows.empty() ? 0 : rows.back() + 1));
  for (const int64_t row : rows) wanted[static_cast<size_t>(row)] = true;
  std::vector<int64_t> ordered;
  ordered.reserve(rows.size());
  for (int64_t leaf = 0; leaf < points_.groups(); ++leaf) {
    for (const int64_t row : points_.RowsOf(leaf)) {
      if (row < std::ssize(wanted) && wanted[static_cast<size_t>(row)]) ordered.push_back(row);
    }
  }
  return ordered;
}

KdTree::Node KdTree::Left(const Node& node) {
  return {node.number + 1, node.first, node.first + (node.last - node.first) / 2};
}

// After the left child, which has a node less than twice its leaves.
KdTree::Node KdTree::Right(const Node& node) {
  const int64_t left = (node.last - node.first) / 2;
  return {node.number + 2 * left, node.first + left, node.last};
}

// Sets the boxes of a node and of all below it; returns its own.
BoundingBox KdTree::SetBoxes(const Node& node, const std::vector<BoundingBox>& leaves) {
  const bool is_leaf = node.last == node.first + 1;
  BoundingBox box =
      is_leaf ? leaves[static_cast<size_t>(node.first)] : SetBoxes(Left(node), leaves);
  if (!is_leaf) box.Enclose(SetBoxes(Right(node), leaves));
  low_.row(node.number) = box.low;
  high_.row(node.number) = box.high;
  return box;
}

// The squared distance of a scaled point to a node's box.
double KdTree::Bound(const Node& node, const RowVector& scaled) const {
  return (low_.row(node.number) - scaled)
      .cwiseMax(scaled - high_.row(node.number))
      .cwiseMax(0)
      .squaredNorm();
}

void KdTree::ScanLeaves(int64_t first, int64_t last, Searcher* searcher) const {
  for (int64_t leaf = first; leaf < last; ++leaf) {
    points_.Scan(leaf, &searcher->query, &searcher->nearest);
  }
  searcher->limit = points_.ScaledLimit(searcher->query, searcher->nearest);
}

// Scans the leaf around the query, then ever larger nodes around it until enough rows are found, so
// that few of the other leaves can hold nearer ones.
void KdTree::Seed(Searcher* searcher) const {
  std::vector<Node> path = {Root()};
  while (path.back().last > path.back().first + 1) {
    const Node left = Left(path.back()), right = Right(path.back());
    const RowVector& scaled = searcher->query.scaled;
    path.push_back(Bound(right, scaled) < Bound(left, scaled) ? right : left);
  }
  int64_t first = path.back().first, last = first;
  for (; !path.empty(); path.pop_back()) {
    const Node& node = path.back();
    if (last > first && searcher->nearest.full()) return;
    ScanLeaves(node.first, first, searcher);
    ScanLeaves(last, node.last, searcher);
    first = node.first;
    last = node.last;
    searcher->seed = node.number;
  }
}

// Scans the leaves of a node that the searchers cannot prune. All take the same way through the
// tree: a leaf is in cache for all of them.
void KdTree::Visit(const Node& node, const Searchers& searchers) const {
  Searchers wanting;
  for (Searcher* searcher : searchers) {
    if (searcher->seed != node.number && !(Bound(node, searcher->query.scaled) > searcher->limit)) {
      wanting.push_back(searcher);
    }
  }
  if (wanting.empty()) return;
  if (node.last == node.first + 1) {
    for (Searcher* searcher : wanting) ScanLeaves(node.first, node.last, searcher);
    return;
  }
  Visit(Left(node), wanting);
  Visit(Right(node), wanting);
}

std::vector<std::vector<Neighbor>> KdTree::Search(const Matrix& queries, int64_t count,
                                                  const std::vector<bool>* skipped) const {
  std::vector<std::vector<Neighbor>> found(static_cast<size_t>(queries.rows()));
  if (count <= 0 || points_.groups() == 0) return found;
  std::vector<Searcher> searchers;
  searchers.reserve(found.size());
  Searchers all;
  for (Eigen::Index q = 0; q < queries.rows(); ++q) {
    searchers.push_back({points_.Prepare(queries.row(q)), TopK(count, skipped),
                         std::numeric_limits<double>::infinity()});
    Seed(&searchers.back());
    all.push_back(&searchers.back());
  }
  Visit(Root(), all);
  for (size_t q = 0; q < found.size(); ++q) found[q] = searchers[q].nearest.Sorted();
  return found;
}

}  // namespace privatemail
