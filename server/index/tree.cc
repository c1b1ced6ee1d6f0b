#include "server/index/tree.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nanoflann.hpp>
#include <numeric>
#include <utility>

namespace privatemail {

// Of any number of coordinates.
class Tree::Searcher {
 public:
  virtual ~Searcher() = default;
  virtual void Search(const double* query, NearestSoFar& nearest) const = 0;
};

namespace {

constexpr size_t kLeafRows = 16;

// What nanoflann asks of points, and of distances between them.
class Points {
 public:
  explicit Points(Matrix points) : points_(std::move(points)) {}
  size_t kdtree_get_point_count() const { return static_cast<size_t>(points_.rows()); }
  double kdtree_get_pt(size_t row, size_t coordinate) const {
    return points_(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(coordinate));
  }
  template <typename Box>
  bool kdtree_get_bbox(Box& /*box*/) const {
    return false;  // let it be computed
  }
  const double* row(size_t row) const {
    return points_.data() + static_cast<Eigen::Index>(row) * points_.cols();
  }
  void Permute(const std::vector<uint32_t>& rows) { points_ = Matrix(points_(rows, Eigen::all)); }

 private:
  Matrix points_;
};

struct Distance {
  using ElementType = double;
  using DistanceType = double;

  explicit Distance(const Points& points) : points(points) {}
  double evalMetric(const double* query, size_t row, size_t size) const {
    return SquaredDistance(query, points.row(row), static_cast<Eigen::Index>(size));
  }
  double accum_dist(double a, double b, int /*coordinate*/) const { return (a - b) * (a - b); }

  const Points& points;
};

// What nanoflann asks of a result: it passes by what is not below worstDist.
struct Results {
  using DistanceType = double;

  size_t size() const { return nearest.size(); }
  bool full() const { return nearest.full(); }
  bool addPoint(double squared_distance, uint32_t row) {
    nearest.Offer({rows[row], squared_distance});
    return true;
  }
  // Rows at the same distance may have a smaller number, and bounds of branches are rounded.
  double worstDist() const {
    constexpr double kRounding = 1e-12;
    if (!full()) return std::numeric_limits<double>::infinity();
    return nearest.farthest() * (1 + kRounding) + std::numeric_limits<double>::min();
  }

  NearestSoFar& nearest;
  const std::vector<uint32_t>& rows;
};

}  // namespace

template <int kDimensions>
class Tree::SearcherOf : public Tree::Searcher {
 public:
  // What lies in one leaf comes to lie side by side in memory: a search waits for a few places in
  // it, not for as many as it looks at rows.
  explicit SearcherOf(const Matrix& points)
      : points_(points), tree_(kDimensions, points_, kLeafRows), rows_(tree_.vAcc) {
    points_.Permute(rows_);
    std::iota(tree_.vAcc.begin(), tree_.vAcc.end(), 0);
  }

  void Search(const double* query, NearestSoFar& nearest) const override {
    Results results{nearest, rows_};
    tree_.findNeighbors(results, query, nanoflann::SearchParams());
  }

 private:
  Points points_;
  nanoflann::KDTreeSingleIndexAdaptor<Distance, Points, kDimensions, uint32_t> tree_;
  const std::vector<uint32_t> rows_;  // of the points, in the order of the tree's leaves
};

Tree::Tree(const Matrix& points) : points_(points) {
  switch (points.cols()) {
    case 1:
      searcher_ = std::make_unique<SearcherOf<1>>(points);
      break;
    case 2:
      searcher_ = std::make_unique<SearcherOf<2>>(points);
      break;
    case 3:
      searcher_ = std::make_unique<SearcherOf<3>>(points);
      break;
    default:
      searcher_ = std::make_unique<SearcherOf<4>>(points);
  }
}

Tree::~Tree() = default;

std::vector<std::vector<Neighbor>> Tree::Search(const Matrix& queries, int64_t count,
                                                const std::vector<bool>* skipped) const {
  // A tree that must be walked as a whole takes longer than a scan.
  if (count < 1 || count >= points_.rows()) return NearestRows(queries, points_, count, skipped);
  std::vector<std::vector<Neighbor>> found;
  for (Eigen::Index q = 0; q < queries.rows(); ++q) {
    NearestSoFar nearest(count, skipped);
    searcher_->Search(queries.data() + q * queries.cols(), nearest);
    // Where it is not full there are no more, or distances overflow, which nanoflann passes by.
    found.push_back(nearest.full() && std::isfinite(nearest.farthest())
                        ? nearest.Sorted()
                        : NearestRows(queries.row(q), points_, count, skipped).front());
  }
  return found;
}

}  // namespace privatemail
