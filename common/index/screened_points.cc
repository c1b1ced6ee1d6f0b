#include "common/index/screened_points.h"

#include <cmath>
#include <limits>
#include <utility>

namespace privatemail {
namespace {

RowVector CentreOf(const Matrix& points) { return points.colwise().mean(); }

double ScaleOf(const Matrix& points, const RowVector& centre) {
  return (points.rowwise() - centre).cwiseAbs().maxCoeff();
}

}  // namespace

void SquaredDistances(const Eigen::VectorXf& point, const Eigen::MatrixXf& columns,
                      Eigen::ArrayXf* distances) {
  *distances = Eigen::ArrayXf::Zero(columns.rows());
  for (Eigen::Index c = 0; c < columns.cols(); ++c) {
    *distances += (columns.col(c).array() - point[c]).square();
  }
}

bool ScreenedPoints::CanHold(const Matrix& points) {
  if (points.size() == 0) return false;
  const RowVector centre = CentreOf(points);
  const double scale = ScaleOf(points, centre);
  // Below, squared distances in double are denormal and less exact than floats.
  constexpr double kMinScale = 1e-120;
  return centre.allFinite() && std::isfinite(scale) && scale > kMinScale;
}

ScreenedPoints::ScreenedPoints(const Matrix& points)
    : points_(points), centre_(CentreOf(points)), scale_(ScaleOf(points, centre_)) {}

Eigen::VectorXf ScreenedPoints::Scaled(const RowVector& point) const {
  return ((point - centre_) / scale_).transpose().cast<float>();
}

FloatMatrix ScreenedPoints::Scaled() const {
  return ((points_.rowwise() - centre_) / scale_).cast<float>();
}

void ScreenedPoints::AddGroup(std::vector<int64_t> rows) {
  Eigen::MatrixXf copies(static_cast<Eigen::Index>(rows.size()), points_.cols());
  for (size_t i = 0; i < rows.size(); ++i) {
    copies.row(static_cast<Eigen::Index>(i)) =
        ((points_.row(rows[i]) - centre_) / scale_).cast<float>();
  }
  groups_.push_back({std::move(rows), std::move(copies)});
}

// Error bound of distances between copies. With scaled coordinates of points at most 1 and of the
// query at most m:
// - copies are off by 2^-24 (1 + m), their rounded differences by at most 2^-22 (1 + m)
// - distances are off by sqrt(k) times that; their sum of squares by 2^-24 of itself for each of
//   k + 1 operations
ScreenedPoints::Query ScreenedPoints::Prepare(const RowVector& query) const {
  Query prepared = {.exact = query, .scaled = Scaled(query)};
  const double widest = 1 + static_cast<double>(prepared.scaled.cwiseAbs().maxCoeff());
  // Beyond, squares overflow in single precision: then every row is compared in double.
  constexpr double kMaxWidth = 1e18;
  prepared.max_error =
      widest < kMaxWidth ? std::sqrt(static_cast<double>(points_.cols())) * std::ldexp(widest, -22)
                         : std::numeric_limits<double>::infinity();
  return prepared;
}

void ScreenedPoints::Scan(int64_t group, const Query& query, TopK* nearest) const {
  const Group& scanned = groups_[static_cast<size_t>(group)];
  Eigen::ArrayXf distances;
  SquaredDistances(query.scaled, scanned.copies, &distances);
  const double rounding = 1 + static_cast<double>(points_.cols() + 2) * std::ldexp(1, -23);
  const auto farthest = [&] {
    if (!nearest->full() || nearest->size() == 0) return std::numeric_limits<double>::infinity();
    const double within = std::sqrt(nearest->max_squared_distance()) / scale_ + query.max_error;
    return within * within * rounding;
  };
  double limit = farthest();
  for (Eigen::Index i = 0; i < distances.size(); ++i) {
    if (distances[i] > limit) continue;
    const int64_t row = scanned.rows[static_cast<size_t>(i)];
    const double* point = points_.data() + row * points_.cols();
    nearest->Offer({row, SquaredDistance(point, query.exact.data(), points_.cols())});
    limit = farthest();
  }
}

}  // namespace privatemail
