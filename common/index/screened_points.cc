#include "common/index/screened_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace privatemail {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

RowVector MiddleOf(const BoundingBox& box) { return box.low / 2 + box.high / 2; }

// Half the widest side.
double RadiusOf(const BoundingBox& box) { return (box.high / 2 - box.low / 2).maxCoeff(); }

// Whether float copies of these rows are of use: they do not (nearly) coincide, and no sum
// overflows. Otherwise every row is compared in double.
bool CanScreen(const BoundingBox& box) {
  // Below, squared distances in double are denormal and less exact than floats.
  constexpr double kMinScale = 1e-120;
  const double scale = RadiusOf(box);
  return scale > kMinScale && std::isfinite(scale);
}

// Whether all rows equal the first, bit by bit but for the sign of zero.
bool Coincide(const Matrix& points, const std::vector<int64_t>& rows) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](int64_t row) { return points.row(row) == points.row(rows.front()); });
}

void Prefetch(const Eigen::Ref<const RowVector>& row) {
  constexpr Eigen::Index kCacheLine = 8;  // doubles
  for (Eigen::Index c = 0; c < row.size(); c += kCacheLine) __builtin_prefetch(row.data() + c);
}

}  // namespace

void BoundingBox::Enclose(const BoundingBox& other) {
  low = low.cwiseMin(other.low);
  high = high.cwiseMax(other.high);
}

BoundingBox BoundingBox::Around(const Matrix& points, const std::vector<int64_t>& rows) {
  BoundingBox box{RowVector::Constant(points.cols(), kInfinity),
                  RowVector::Constant(points.cols(), -kInfinity)};
  for (const int64_t row : rows) {
    box.low = box.low.cwiseMin(points.row(row));
    box.high = box.high.cwiseMax(points.row(row));
  }
  return box;
}

ScreenedPoints::ScreenedPoints(const Matrix& points, const BoundingBox& box)
    : points_(points),
      screened_(CanScreen(box)),
      centre_(screened_ ? MiddleOf(box) : RowVector::Zero(points.cols())),
      scale_(screened_ ? RadiusOf(box) : 1),
      rounding_(std::ldexp(static_cast<double>(points.cols() + 8), -50)) {}

BoundingBox ScreenedPoints::AddGroup(std::vector<int64_t> rows) {
  Matrix scaled(std::ssize(rows), points_.cols());
  for (Eigen::Index i = 0; i < scaled.rows(); ++i) {
    scaled.row(i) = (points_.row(rows[static_cast<size_t>(i)]) - centre_) / scale_;
  }
  BoundingBox box{scaled.colwise().minCoeff(), scaled.colwise().maxCoeff()};
  Group group = {.rows = std::move(rows),
                 .coincide = false,
                 .centre = MiddleOf(box),
                 .radius = 0,
                 .copies = {}};
  group.coincide = Coincide(points_, group.rows);
  if (screened_ && !group.coincide) {
    scaled.rowwise() -= group.centre;
    group.radius = std::sqrt(scaled.rowwise().squaredNorm().maxCoeff());
    const Eigen::Index tiles = (scaled.rows() + kLanes - 1) / kLanes;
    group.copies.setZero(kLanes, tiles * scaled.cols());
    for (Eigen::Index i = 0; i < scaled.rows(); ++i) {
      group.copies.row(i % kLanes).segment(i / kLanes * scaled.cols(), scaled.cols()) =
          scaled.row(i).cast<float>();
    }
  }
  groups_.push_back(std::move(group));
  return box;
}

ScreenedPoints::Query ScreenedPoints::Prepare(const RowVector& query) const {
  Query prepared = {.exact = query, .scaled = Scaled(query)};
  // Points reach 2 instead of 1 where the middle of the box is rounded to its end.
  prepared.width = 2 + prepared.scaled.cwiseAbs().maxCoeff();
  return prepared;
}

// Scaled coordinates are off by 2^-51 width, for query and point together, and local ones by 2^-52
// width more.
double ScreenedPoints::ScaledLimit(const Query& query, const TopK& nearest) const {
  if (!screened_ || !nearest.full() || nearest.size() == 0) return kInfinity;
  const double error =
      std::sqrt(static_cast<double>(points_.cols())) * std::ldexp(query.width, -50);
  const double within = std::sqrt(nearest.max_squared_distance()) / scale_ + error;
  return within * within * (1 + rounding_);
}

// With local coordinates q of the query and p of a point, |q - p|^2 = |q|^2 + sum p (p - 2 q). Only
// the sum is computed in single precision: its error is small beside |p|, however far the query is.
// - Copies of p and 2 q, their difference and its product with p are rounded to
//   2^-24 |p| (|p| + 2 |q|) each (Cauchy-Schwarz); so are k partial sums. 2 more of these are for
//   second orders.
// - Underflow adds less than 2^-140 k (2 + |q|^2).
void ScreenedPoints::Scan(int64_t group, Query* query, TopK* nearest) const {
  const Group& scanned = groups_[static_cast<size_t>(group)];
  if (scanned.coincide) return OfferCoincident(scanned, *query, nearest);
  const Eigen::Index cols = points_.cols();
  const auto offer = [&](int64_t row) {
    nearest->Offer({row, SquaredDistance(points_.data() + row * cols, query->exact.data(), cols)});
  };
  // Beyond, single precision may overflow: then every row is compared in double.
  constexpr double kMaxWidth = 1e30;
  if (!screened_ || !(query->width < kMaxWidth)) {
    for (const int64_t row : scanned.rows) offer(row);
    return;
  }
  query->local = query->scaled - scanned.centre;
  query->twice = (2 * query->local).transpose().array().cast<float>();
  const double squared_length = query->local.squaredNorm();
  const double term = scanned.radius * (scanned.radius + 2 * std::sqrt(squared_length));
  const auto k = static_cast<double>(cols);
  const double max_error =
      std::ldexp((4 + k + 2) * term, -24) + std::ldexp(k * (2 + squared_length), -140);
  const auto max_sum = [&] {
    return ScaledLimit(*query, *nearest) - squared_length * (1 - rounding_) + max_error;
  };
  double limit = max_sum();
  std::vector<Candidate>& candidates = query->candidates;
  const auto rows = static_cast<Eigen::Index>(scanned.rows.size());
  for (Eigen::Index first = 0, column = 0; first < rows; first += kLanes, column += cols) {
    using Lanes = Eigen::Array<float, kLanes, 1>;
    Lanes sums = Lanes::Zero();
    for (Eigen::Index c = 0; c < cols; ++c) {
      const auto copies = scanned.copies.col(column + c);
      sums += copies * (copies - query->twice[c]);
    }
    if (static_cast<double>(sums.minCoeff()) > limit) continue;
    for (Eigen::Index i = 0; i < std::min(kLanes, rows - first); ++i) {
      if (!(static_cast<double>(sums[i]) > limit)) candidates.push_back({sums[i], first + i});
    }
  }
  // Nearest first, so that few are compared in double: each is a cache miss.
  std::make_heap(candidates.begin(), candidates.end(), std::greater<>());
  constexpr size_t kPrefetched = 16;
  for (size_t i = 0; i < std::min(candidates.size(), kPrefetched); ++i) {
    Prefetch(points_.row(scanned.rows[static_cast<size_t>(candidates[i].second)]));
  }
  while (!candidates.empty() && !(static_cast<double>(candidates.front().first) > limit)) {
    offer(scanned.rows[static_cast<size_t>(candidates.front().second)]);
    limit = max_sum();
    std::pop_heap(candidates.begin(), candidates.end(), std::greater<>());
    candidates.pop_back();
  }
  candidates.clear();
}

void ScreenedPoints::OfferCoincident(const Group& group, const Query& query, TopK* nearest) const {
  if (group.rows.empty()) return;
  const double* point = points_.data() + group.rows.front() * points_.cols();
  const double distance = SquaredDistance(point, query.exact.data(), points_.cols());
  for (const int64_t row : group.rows) {
    if (!nearest->Accepts({row, distance})) return;  // nor later rows
    nearest->Offer({row, distance});
  }
}

}  // namespace privatemail
