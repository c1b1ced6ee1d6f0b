#include "common/numerics/alignment.h"

#include <Eigen/LU>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace privatemail {
namespace {

// Spread of a centred cloud below this share of its largest, or of the coordinates that were
// centred, is rounding: the direction is not there.
constexpr double kSpreadFloor = 64 * std::numeric_limits<double>::epsilon();

bool SpansEveryDimension(const Matrix& centred, double largest_coordinate) {
  const Eigen::BDCSVD<Matrix> svd(centred);
  const auto& spread = svd.singularValues();
  const double scale = std::max(spread[0], largest_coordinate);
  return spread[spread.size() - 1] > kSpreadFloor * std::sqrt(centred.rows()) * scale;
}

}  // namespace

Matrix Similarity::Apply(const Matrix& points) const {
  return (scale * points * rotation).rowwise() + translation;
}

absl::StatusOr<Similarity> KabschUmeyama(const Matrix& source, const Matrix& target,
                                         bool with_scale) {
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
  const RowVector source_mean = source.colwise().mean();
  const RowVector target_mean = target.colwise().mean();
  const Matrix source_centred = source.rowwise() - source_mean;
  const Matrix target_centred = target.rowwise() - target_mean;

  // A power of two each, so that clouds of any magnitude keep every digit and no square underflows.
  const auto scale_of = [](const Matrix& cloud) {
    const double largest = cloud.cwiseAbs().maxCoeff();
    return largest > 0 ? std::ldexp(1.0, std::ilogb(largest)) : 1.0;
  };
  const double source_unit = scale_of(source_centred);
  const double target_unit = scale_of(target_centred);
  const Matrix s = source_centred / source_unit;
  const Matrix t = target_centred / target_unit;

  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(s.transpose() * t,
                                              Eigen::ComputeFullU | Eigen::ComputeFullV);
  Eigen::VectorXd sign = Eigen::VectorXd::Ones(k);
  if (svd.matrixU().determinant() * svd.matrixV().determinant() < 0) sign[k - 1] = -1;

  Similarity map;
  map.rotation = svd.matrixU() * sign.asDiagonal() * svd.matrixV().transpose();
  if (with_scale && s.squaredNorm() > 0) {
    map.scale = svd.singularValues().dot(sign) / s.squaredNorm() * (target_unit / source_unit);
  }
  map.translation = target_mean - map.scale * source_mean * map.rotation;

  const bool source_spans = SpansEveryDimension(s, source.cwiseAbs().maxCoeff() / source_unit);
  if (!source_spans || !SpansEveryDimension(t, target.cwiseAbs().maxCoeff() / target_unit)) {
    return absl::FailedPreconditionError(
        absl::StrCat("alignment refused: the ", source_spans ? "target" : "source",
                     " anchors span fewer than ", k,
                     " dimensions (collinear or in one place), so no rotation is determined; "
                     "relative residual of the best fit: ",
                     RelativeResidual(map, source, target)));
  }
  return map;
}

double RelativeResidual(const Similarity& map, const Matrix& source, const Matrix& target) {
  const double spread = (target.rowwise() - target.colwise().mean().eval()).stableNorm();
  return (map.Apply(source) - target).stableNorm() / spread;
}

}  // namespace privatemail
