#include "common/embedding/affinity.h"

namespace privatemail {
namespace {

// With so few, differences take no longer than a product of matrices, and lose nothing.
constexpr Eigen::Index kFewColumns = 4;

void SetByDifferences(const Matrix& x, const Matrix& y, double scale, Matrix* affinity) {
  const Matrix columns = y.transpose();  // of y, each contiguous
  for (Eigen::Index r = 0; r < affinity->rows(); ++r) {
    auto w = affinity->row(r).array();
    w.setZero();
    for (Eigen::Index c = 0; c < columns.rows(); ++c) {
      w -= (columns.row(c).array() - x(r, c)).square();
    }
    w = (w * scale).exp();
  }
}

}  // namespace

double KernelDenominator(KernelConvention convention, double bandwidth) {
  switch (convention) {
    case KernelConvention::kTwoSigmaSquared:
      return 2 * bandwidth * bandwidth;
    case KernelConvention::kSigma:
      return bandwidth;
    case KernelConvention::kSigmaSquared:
      return bandwidth * bandwidth;
  }
  __builtin_unreachable();
}

Matrix GaussianAffinity(const Matrix& points, double kernel_denominator) {
  const Eigen::Index n = points.rows();
  Matrix affinity(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    affinity.row(i) =
        (-(points.rowwise() - points.row(i)).rowwise().squaredNorm().transpose().array() /
         kernel_denominator)
            .exp();
    affinity(i, i) = 0;
  }
  return affinity;
}

void AffinityBetween(const Matrix& x, const Vector& x_squared_norms, const Matrix& y,
                     const Vector& y_squared_norms, double kernel_denominator, Matrix* affinity) {
  const double scale = 1 / kernel_denominator;
  if (x.cols() <= kFewColumns) {
    affinity->resize(x.rows(), y.rows());
    return SetByDifferences(x, y, scale, affinity);
  }
  affinity->noalias() = x * y.transpose();
  const auto norms = y_squared_norms.transpose().array();
  // Row by row, which is in the cache.
  for (Eigen::Index r = 0; r < affinity->rows(); ++r) {
    auto w = affinity->row(r).array();
    w = ((2 * w - norms - x_squared_norms[r]).min(0.0) * scale).exp();
  }
}

}  // namespace privatemail
