#include "common/index/r_tree.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/huge_pages.h"
#include "common/numerics/decompositions.h"

namespace privatemail {

// A search for a fixed number of coordinates.
class RTree::Searcher {
 public:
  virtual ~Searcher() = default;
  virtual void Search(const double* query, TopK& nearest) const = 0;
};

namespace {

// Points of a leaf and children of a node.
constexpr size_t kFan = 16;

constexpr size_t kCacheLine = 64;  // bytes

template <int kDim>
using Point = std::array<double, kDim>;

// One value of each of kFan points or boxes, for vector instructions.
using Lane = std::array<double, kFan>;

// A distinct point and its rows. Whole classes may coincide, and are then visited once.
template <int kDim>
struct Place {
  Point<kDim> at;
  Point<kDim> rotated;  // Axes::Rotate(at)
  uint32_t first;       // in the rows sorted by place
  uint32_t last;
};

// Principal axes. Embeddings are often close to an oblique line: boxes along these axes are tight.
template <int kDim>
class Axes {
 public:
  explicit Axes(const Matrix& points) {
    centre_ = points.colwise().mean();
    Eigen::Matrix<double, Eigen::Dynamic, kDim> centred = points.rowwise() - centre_;
    radius_ = std::sqrt(centred.rowwise().squaredNorm().maxCoeff());
    axes_.setIdentity();
    if (radius_ > 0 && std::isfinite(radius_)) {
      centred /= radius_;
      axes_ = DecomposeSymmetric(centred.transpose() * centred).eigenvectors;
    } else {
      centre_.setZero();  // identity, so that no coordinate becomes infinite
    }
  }

  // The coordinates of a point along the axes.
  Point<kDim> Rotate(const Point<kDim>& point) const {
    Point<kDim> rotated;
    Row::Map(rotated.data()) = (Row::Map(point.data()) - centre_) * axes_;
    return rotated;
  }

  // Error bound of differences between rotated coordinates of `point` and of the tree's points: k +
  // 2 roundings of each, at lengths up to |point - centre| and the radius. Infinite or NaN if these
  // overflow.
  double Rounding(const Point<kDim>& point) const {
    constexpr double kOperations = 32;  // more than 2 sqrt(k) (k + 2)
    return kOperations * std::numeric_limits<double>::epsilon() *
           (radius_ + (Row::Map(point.data()) - centre_).norm());
  }

 private:
  using Row = Eigen::Matrix<double, 1, kDim>;
  using Square = Eigen::Matrix<double, kDim, kDim>;

  Square axes_;
  Row centre_;
  double radius_;  // of the points, around the centre
};

// The places of all points. rows: receives the rows of each place, ascending.
template <int kDim>
std::vector<Place<kDim>> PlacesOf(const Matrix& points, std::vector<uint32_t>* rows) {
  std::vector<Place<kDim>> places(static_cast<size_t>(points.rows()));
  for (uint32_t row = 0; row < places.size(); ++row) {
    std::copy_n(points.data() + row * points.cols(), kDim, places[row].at.begin());
    places[row].first = row;
  }
  std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
    return a.at != b.at ? a.at < b.at : a.first < b.first;
  });
  size_t distinct = 0;
  rows->reserve(places.size());
  for (uint32_t i = 0; i < places.size(); ++i) {
    rows->push_back(places[i].first);
    if (distinct == 0 || places[distinct - 1].at != places[i].at) {
      places[distinct] = places[i];
      places[distinct++].first = i;
    }
    places[distinct - 1].last = i + 1;
  }
  places.resize(distinct);
  return places;
}

template <int kDim>
struct Box {
  Point<kDim> low;
  Point<kDim> high;

  static Box Empty() {
    Box box;
    box.low.fill(std::numeric_limits<double>::infinity());
    box.high.fill(-std::numeric_limits<double>::infinity());
    return box;
  }
  void Enclose(const Box& other) {
    for (size_t c = 0; c < kDim; ++c) {
      low[c] = std::min(low[c], other.low[c]);
      high[c] = std::max(high[c], other.high[c]);
    }
  }
  size_t WidestSide() const {
    size_t widest = 0;
    for (size_t c = 1; c < kDim; ++c) {
      if (high[c] - low[c] > high[widest] - low[widest]) widest = c;
    }
    return widest;
  }
};

template <typename Iterator>
auto BoxAround(Iterator begin, Iterator end) {
  constexpr int kDim = std::tuple_size_v<decltype(begin->rotated)>;
  Box<kDim> box = Box<kDim>::Empty();
  for (; begin != end; ++begin) box.Enclose({begin->rotated, begin->rotated});
  return box;
}

// Orders places so that each run of kFan is close together, and each kFan of those runs, and so on:
// splits along the widest side until one group of `group` (a power of kFan) places is left.
template <typename Iterator>
void Arrange(Iterator begin, Iterator end, ptrdiff_t group) {
  while (group >= end - begin) group /= static_cast<ptrdiff_t>(kFan);
  if (group <= 1) return;
  const ptrdiff_t groups = (end - begin + group - 1) / group;
  const Iterator middle = begin + groups / 2 * group;
  const size_t side = BoxAround(begin, end).WidestSide();
  std::nth_element(begin, middle, end, [side](const auto& a, const auto& b) {
    return a.rotated[side] < b.rotated[side];
  });
  Arrange(begin, middle, group);
  Arrange(middle, end, group);
}

// The squared lengths of kFan differences, rounded as SquaredDistance rounds them.
template <int kDim>
Lane SquaredLengths(const std::array<Lane, kDim>& differences) {
  std::array<Lane, 4> squares = {};
  for (size_t c = 0; c < kDim; ++c) {
    for (size_t i = 0; i < kFan; ++i) {
      squares[c][i] = std::fma(differences[c][i], differences[c][i], 0.);
    }
  }
  Lane lengths;
  for (size_t i = 0; i < kFan; ++i) {
    lengths[i] = squares[0][i];
    if constexpr (kDim >= 2) lengths[i] += squares[1][i];
    if constexpr (kDim == 3) lengths[i] += squares[2][i];
    if constexpr (kDim == 4) lengths[i] += squares[2][i] + squares[3][i];
  }
  return lengths;
}

// The children of a node by their bounds. Few of them are visited, so they are not sorted: the
// bounds, which are at least 0, are compared as integers whose last bits are the child's number.
class Children {
 public:
  Children(const Lane& bounds, size_t count) {
    for (size_t i = 0; i < kFan; ++i) {
      keys_[i] = (std::bit_cast<int64_t>(bounds[i]) & ~kNumber) | static_cast<int64_t>(i);
    }
    for (size_t i = count; i < kFan; ++i) Remove(i);
  }

  // Number and bound, rounded down, of the nearest one; kFan: none is left.
  std::pair<size_t, double> Nearest() const {
    int64_t least = kRemoved;
    for (const int64_t key : keys_) least = std::min(least, key);
    if (least == kRemoved) return {kFan, 0};
    return {least & kNumber, std::bit_cast<double>(least & ~kNumber)};
  }
  void Remove(size_t child) { keys_[child] = kRemoved; }

 private:
  static constexpr int64_t kNumber = kFan - 1;
  static constexpr int64_t kRemoved = std::numeric_limits<int64_t>::max();

  std::array<int64_t, kFan> keys_;
};

}  // namespace

// A packed R-tree: leaves of kFan points, nodes with the boxes of kFan children along the principal
// axes. All nodes are in a few arrays, indexed by number, so a search has few cache misses.
template <int kDim>
class RTree::SearcherOf : public RTree::Searcher {
 public:
  explicit SearcherOf(const Matrix& points) : axes_(points) {
    std::vector<Place<kDim>> places = PlacesOf<kDim>(points, &rows_);
    for (Place<kDim>& place : places) place.rotated = axes_.Rotate(place.at);
    Arrange(places.begin(), places.end(), kLargestGroup);
    AddLeaves(places);
    UseHugePages(leaves_);
    for (const Level& level : levels_) UseHugePages(level.nodes);
  }

  void Search(const double* query, TopK& nearest) const override {
    Query prepared;
    std::copy_n(query, kDim, prepared.at.begin());
    prepared.rotated = axes_.Rotate(prepared.at);
    prepared.rounding = axes_.Rounding(prepared.at);
    Visit(levels_.size(), 0, prepared, nearest);
  }

 private:
  static constexpr ptrdiff_t kLargestGroup = ptrdiff_t{1} << 32;

  // The data of kFan places that a search reads; of fewer in the last leaf.
  struct alignas(kCacheLine) Leaf {
    std::array<Lane, kDim> at;
    std::array<uint32_t, kFan> row;  // or the index in duplicates_
  };
  // The rows of a place with several rows.
  struct Duplicates {
    uint32_t first;  // in rows_
    uint32_t last;
  };
  struct Query {
    Point<kDim> at;
    Point<kDim> rotated;
    double rounding;
  };
  struct Node {
    std::array<Lane, kDim> low;
    std::array<Lane, kDim> high;
  };

  void AddLeaves(const std::vector<Place<kDim>>& places) {
    std::vector<Box<kDim>> boxes;
    places_ = places.size();
    leaves_.reserve((places.size() + kFan - 1) / kFan);
    for (size_t begin = 0; begin < places.size(); begin += kFan) {
      const size_t end = std::min(begin + kFan, places.size());
      Leaf& leaf = leaves_.emplace_back();
      uint16_t& duplicated = duplicated_.emplace_back();
      for (size_t i = begin; i < end; ++i) {
        const Place<kDim>& place = places[i];
        for (size_t c = 0; c < kDim; ++c) leaf.at[c][i - begin] = place.at[c];
        if (place.last == place.first + 1) {
          leaf.row[i - begin] = rows_[place.first];
          continue;
        }
        duplicated |= uint16_t{1} << (i - begin);
        leaf.row[i - begin] = static_cast<uint32_t>(duplicates_.size());
        duplicates_.push_back({place.first, place.last});
      }
      boxes.push_back(BoxAround(places.begin() + begin, places.begin() + end));
    }
    while (boxes.size() > 1) boxes = AddLevel(boxes);
  }

  // Adds a level over nodes or leaves with these boxes; returns the boxes of its nodes.
  std::vector<Box<kDim>> AddLevel(const std::vector<Box<kDim>>& boxes) {
    std::vector<Box<kDim>> around;
    Level& level = levels_.emplace_back();
    level.children = boxes.size();
    for (size_t child = 0; child < boxes.size(); ++child) {
      const size_t place = child % kFan;
      if (place == 0) {
        level.nodes.emplace_back();
        around.push_back(Box<kDim>::Empty());
      }
      for (size_t c = 0; c < kDim; ++c) {
        level.nodes.back().low[c][place] = boxes[child].low[c];
        level.nodes.back().high[c][place] = boxes[child].high[c];
      }
      around.back().Enclose(boxes[child]);
    }
    return around;
  }

  // Squared distances above this, which allows for rounding, are pruned.
  static double Limit(const TopK& nearest) {
    constexpr double kRounding = 1e-12;
    if (!nearest.full()) return std::numeric_limits<double>::infinity();
    return nearest.max_squared_distance() * (1 + kRounding) + std::numeric_limits<double>::min();
  }

  // Searches below a node of levels_[height - 1]; height 0: a leaf. Nearest children first.
  void Visit(size_t height, size_t number, const Query& query, TopK& nearest) const {
    if (height == 0) return Offer(number, query, nearest);
    const Level& level = levels_[height - 1];
    const size_t first = number * kFan;
    Children children(Bounds(level.nodes[number], query), std::min(kFan, level.children - first));
    for (;;) {
      const auto [child, bound] = children.Nearest();
      if (child == kFan || bound > Limit(nearest)) return;
      Visit(height - 1, first + child, query, nearest);
      children.Remove(child);
    }
  }

  // Lower bounds of the squared distances to points in the boxes, in spite of rounding.
  static Lane Bounds(const Node& node, const Query& query) {
    std::array<Lane, kDim> gaps;
    for (size_t c = 0; c < kDim; ++c) {
      for (size_t i = 0; i < kFan; ++i) {
        const double below = node.low[c][i] - query.rotated[c];
        const double above = query.rotated[c] - node.high[c][i];
        const double gap = (below > above ? below : above) - query.rounding;
        gaps[c][i] = gap > 0 ? gap : 0;
      }
    }
    return SquaredLengths<kDim>(gaps);
  }

  void Offer(size_t number, const Query& query, TopK& nearest) const {
    const Leaf& leaf = leaves_[number];
    std::array<Lane, kDim> differences;
    for (size_t c = 0; c < kDim; ++c) {
      for (size_t i = 0; i < kFan; ++i) differences[c][i] = query.at[c] - leaf.at[c][i];
    }
    const Lane distances = SquaredLengths<kDim>(differences);
    const double limit =
        nearest.full() ? nearest.max_squared_distance() : std::numeric_limits<double>::infinity();
    uint32_t near = 0;  // a bit for each place
    for (size_t i = 0; i < kFan; ++i) near |= uint32_t{distances[i] <= limit} << i;
    near &= (uint32_t{1} << std::min(kFan, places_ - number * kFan)) - 1;
    for (; near != 0; near &= near - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(near));
      if ((duplicated_[number] >> i & 1) == 0) {
        nearest.Offer({leaf.row[i], distances[i]});
      } else if (!nearest.full() || distances[i] <= nearest.max_squared_distance()) {
        OfferAll(duplicates_[leaf.row[i]], distances[i], nearest);
      }
    }
  }

  void OfferAll(const Duplicates& duplicates, double squared_distance, TopK& nearest) const {
    for (uint32_t i = duplicates.first; i < duplicates.last; ++i) {
      const Neighbor one{rows_[i], squared_distance};
      if (!nearest.Accepts(one)) return;  // nor later rows
      nearest.Offer(one);
    }
  }

  struct Level {
    std::vector<Node> nodes;
    size_t children = 0;  // of all nodes together
  };

  const Axes<kDim> axes_;
  std::vector<uint32_t> rows_;  // by place
  std::vector<Duplicates> duplicates_;
  size_t places_ = 0;  // of all leaves together
  std::vector<Leaf> leaves_;
  std::vector<uint16_t> duplicated_;  // a bit for each place of a leaf: it has several rows
  std::vector<Level> levels_;         // lowest first
};

RTree::RTree(const Matrix& points) {
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

RTree::~RTree() = default;

std::vector<std::vector<Neighbor>> RTree::Search(const Matrix& queries, int64_t count,
                                                 const std::vector<bool>* skipped) const {
  std::vector<std::vector<Neighbor>> found;
  for (Eigen::Index q = 0; q < queries.rows(); ++q) {
    TopK nearest(count, skipped);
    if (count > 0) searcher_->Search(queries.data() + q * queries.cols(), nearest);
    found.push_back(nearest.Sorted());
  }
  return found;
}

}  // namespace privatemail
