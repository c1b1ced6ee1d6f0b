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

// Points without their repetitions, of each the rows that it stands for: whole classes may have one
// place where labels decide alone, and a search would look at all of their items.
struct Places {
  Matrix points;                // distinct, in lexicographic order
  std::vector<uint32_t> first;  // of each point in `rows`, and the end
  std::vector<uint32_t> rows;   // ascending for each point
};

Places PlacesOf(const Matrix& points) {
  const Eigen::Index cols = points.cols();
  const auto at = [&](uint32_t row) { return points.data() + row * cols; };
  Places places;
  places.rows.resize(static_cast<size_t>(points.rows()));
  std::iota(places.rows.begin(), places.rows.end(), 0);
  std::sort(places.rows.begin(), places.rows.end(), [&](uint32_t a, uint32_t b) {
    for (Eigen::Index c = 0; c < cols; ++c) {
      if (at(a)[c] != at(b)[c]) return at(a)[c] < at(b)[c];
    }
    return a < b;
  });
  for (uint32_t i = 0; i < places.rows.size(); ++i) {
    const bool again =
        i > 0 && std::equal(at(places.rows[i]), at(places.rows[i]) + cols, at(places.rows[i - 1]));
    if (!again) places.first.push_back(i);
  }
  places.points.resize(std::ssize(places.first), cols);
  for (size_t i = 0; i < places.first.size(); ++i) {
    places.points.row(static_cast<Eigen::Index>(i)) = points.row(places.rows[places.first[i]]);
  }
  places.first.push_back(static_cast<uint32_t>(places.rows.size()));
  return places;
}

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
  bool addPoint(double squared_distance, uint32_t place) {
    const Range range = ranges[place];
    nearest.Offer({rows[range.first], squared_distance});
    for (uint32_t i = range.first + 1; i < range.last; ++i) {
      const Neighbor one{rows[i], squared_distance};
      if (!nearest.Wants(one)) break;  // nor those after it
      nearest.Offer(one);
    }
    return true;
  }
  // Rows at the same distance may have a smaller number, and bounds of branches are rounded.
  double worstDist() const {
    constexpr double kRounding = 1e-12;
    if (!full()) return std::numeric_limits<double>::infinity();
    return nearest.farthest() * (1 + kRounding) + std::numeric_limits<double>::min();
  }

  struct Range {
    uint32_t first;
    uint32_t last;
  };

  NearestSoFar& nearest;
  const std::vector<Range>& ranges;  // in `rows`, of each place
  const std::vector<uint32_t>& rows;
};

}  // namespace

template <int kDimensions>
class Tree::SearcherOf : public Tree::Searcher {
 public:
  // What lies in one leaf comes to lie side by side in memory: a search waits for a few places in
  // it, not for as many as it looks at rows.
  explicit SearcherOf(Places places)
      : points_(std::move(places.points)),
        tree_(kDimensions, points_, kLeafRows),
        rows_(std::move(places.rows)) {
    for (const uint32_t place : tree_.vAcc) {
      ranges_.push_back({places.first[place], places.first[place + 1]});
    }
    points_.Permute(tree_.vAcc);
    std::iota(tree_.vAcc.begin(), tree_.vAcc.end(), 0);
  }

  void Search(const double* query, NearestSoFar& nearest) const override {
    Results results{nearest, ranges_, rows_};
    tree_.findNeighbors(results, query, nanoflann::SearchParams());
  }

 private:
  Points points_;
  nanoflann::KDTreeSingleIndexAdaptor<Distance, Points, kDimensions, uint32_t> tree_;
  const std::vector<uint32_t> rows_;
  std::vector<Results::Range> ranges_;  // of the points, in the order of the tree's leaves
};

Tree::Tree(const Matrix& points) : points_(points) {
  switch (points.cols()) {
    case 1:
      searcher_ = std::make_unique<SearcherOf<1>>(PlacesOf(points));
      break;
    case 2:
      searcher_ = std::make_unique<SearcherOf<2>>(PlacesOf(points));
      break;
    case 3:
      searcher_ = std::make_unique<SearcherOf<3>>(PlacesOf(points));
      break;
    default:
      searcher_ = std::make_unique<SearcherOf<4>>(PlacesOf(points));
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
