#include "common/embedding/alignment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/numerics/decompositions.h"

namespace privatemail {
namespace {

// Singular values below this share of the largest, or of the coordinates before centring, are
// rounding.
constexpr double kSpreadFloor = 64 * std::numeric_limits<double>::epsilon();

// The R factor has the singular values of the cloud and is small.
bool SpansEveryDimension(const Eigen::MatrixXd& centred, double largest_coordinate) {
  const Eigen::VectorXd spread = SingularValues(TriangularFactor(centred));
  const double scale = std::max(spread[0], largest_coordinate);
  return spread[spread.size() - 1] > kSpreadFloor * std::sqrt(centred.rows()) * scale;
}

absl::Status CheckClouds(const MatrixView& source, const MatrixView& target) {
  const Eigen::Index n = source.rows();
  const Eigen::Index k = source.cols();
  if (target.rows() != n || target.cols() != k) {
    return absl::InvalidArgumentError(absl::StrCat("alignment needs clouds of one shape, but got ",
                                                   n, " x ", k, " and ", target.rows(), " x ",
                                                   target.cols()));
  }
  if (!source.allFinite() || !target.allFinite()) {
    return absl::InvalidArgumentError(
        "alignment needs finite coordinates, but got NaN or infinity");
  }
  if (n < k + 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "alignment in ", k, " dimensions needs at least ", k + 1, " anchors, but got ", n));
  }
  return absl::OkStatus();
}

// A power of two near the largest value: scaling by it loses no digits, and then no square
// overflows or underflows.
double UnitOf(const Eigen::MatrixXd& values) {
  const double largest = values.cwiseAbs().maxCoeff();
  return largest > 0 && std::isfinite(largest) ? std::ldexp(1.0, std::ilogb(largest)) : 1;
}

double NormOf(const Eigen::MatrixXd& values) {
  const double unit = UnitOf(values);
  return (values / unit).norm() * unit;
}

// A cloud minus its mean, column-major because it has few columns.
struct CentredCloud {
  RowVector mean;
  double unit = 1;
  Eigen::MatrixXd points;  // centred, divided by `unit`
  bool spans = false;

  explicit CentredCloud(const MatrixView& cloud) : points(cloud) {
    const double uncentred = UnitOf(points);  // no sum overflows in this unit
    points /= uncentred;
    const double largest = points.cwiseAbs().maxCoeff();
    mean = points.colwise().mean();
    points.rowwise() -= mean;
    const double spread = UnitOf(points);
    points /= spread;
    spans = SpansEveryDimension(points, largest / spread);
    mean *= uncentred;
    unit = uncentred * spread;
  }
};

Similarity BestFit(const CentredCloud& source, const CentredCloud& target) {
  const SingularValueDecomposition svd = FullSvd(source.points.transpose() * target.points);
  Eigen::VectorXd sign = Eigen::VectorXd::Ones(source.points.cols());
  if (Determinant(svd.u) * Determinant(svd.v) < 0) sign[sign.size() - 1] = -1;
  Similarity map;
  map.rotation = svd.u * sign.asDiagonal() * svd.v.transpose();
  if (const double squares = source.points.squaredNorm(); squares > 0) {
    map.scale = svd.singular_values.dot(sign) / squares * (target.unit / source.unit);
  }
  map.translation = target.mean - map.scale * source.mean * map.rotation;
  return map;
}

}  // namespace

Matrix Similarity::Apply(const MatrixView& points) const {
  // Few columns: lazyProduct avoids the set-up of a general matrix product.
  return (scale * points).lazyProduct(rotation).rowwise() + translation;
}

struct AlignmentTarget::Centred : CentredCloud {
  using CentredCloud::CentredCloud;
};

AlignmentTarget::AlignmentTarget(Matrix points) : points_(std::move(points)) {
  if (points_.rows() < points_.cols() + 1) return;
  centred_ = std::make_shared<const Centred>(points_);
  spread_ = NormOf(points_.rowwise() - points_.colwise().mean().eval());
}

absl::StatusOr<Similarity> AlignmentTarget::KabschUmeyama(const MatrixView& source) const {
  PM_RETURN_IF_ERROR(CheckClouds(source, points_));
  const CentredCloud from(source);
  Similarity map = BestFit(from, *centred_);
  if (!from.spans || !centred_->spans) {
    return absl::FailedPreconditionError(
        absl::StrCat("alignment refused: the ", from.spans ? "target" : "source",
                     " anchors span fewer than ", source.cols(),
                     " dimensions (collinear or in one place), so no rotation is determined; "
                     "relative residual of the best fit: ",
                     RelativeResidual(map, source)));
  }
  if (!std::isfinite(map.scale) || !(map.scale != 0) || !map.translation.allFinite()) {
    return absl::FailedPreconditionError(
        "alignment refused: the clouds differ in size by more than a number can hold");
  }
  return map;
}

double AlignmentTarget::RelativeResidual(const Similarity& map, const MatrixView& source) const {
  return NormOf(map.Apply(source) - points_) / spread_;
}

absl::StatusOr<Similarity> KabschUmeyama(const MatrixView& source, const MatrixView& target) {
  PM_RETURN_IF_ERROR(CheckClouds(source, target));
  return AlignmentTarget(target).KabschUmeyama(source);
}

}  // namespace privatemail
