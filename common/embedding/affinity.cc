#include "common/embedding/affinity.h"

#include <chrono>
#include <limits>
#include <utility>

#include "common/base/status_macros.h"

namespace privatemail {
namespace {

// Up to this, differences cost no more than a matrix product and lose no digits.
constexpr Eigen::Index kMaxDifferenceColumns = 4;

void SetByDifferences(const Matrix& x, const Matrix& y, double scale, Matrix* affinity) {
  const Matrix columns = y.transpose();  // contiguous columns of y
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
  if (x.cols() <= kMaxDifferenceColumns) {
    affinity->resize(x.rows(), y.rows());
    return SetByDifferences(x, y, scale, affinity);
  }
  affinity->noalias() = x * y.transpose();
  const auto norms = y_squared_norms.transpose().array();
  // Row by row, to stay in the cache.
  for (Eigen::Index r = 0; r < affinity->rows(); ++r) {
    auto w = affinity->row(r).array();
    w = ((2 * w - norms - x_squared_norms[r]).min(0.0) * scale).exp();
  }
}

ProductObserver OncePerSecond(ProductObserver observer) {
  using Clock = std::chrono::steady_clock;
  return [observer = std::move(observer), last = Clock::now()](double share) mutable {
    if (Clock::now() - last < std::chrono::seconds(1)) return absl::OkStatus();
    last = Clock::now();
    return observer(share);
  };
}

absl::StatusOr<AffinityOperator::Product> AffinityOperator::MultiplyWithDegrees(
    const Matrix& v, const ProductObserver& observer) const {
  Product result{Vector(size()), Matrix(size(), v.cols())};
  PM_RETURN_IF_ERROR(Sums(v, &result.product, &result.degrees, observer));
  // The vectorised exp never returns zero: a sum up to this may hold no normal number.
  const double no_degree = static_cast<double>(size()) * std::numeric_limits<double>::min();
  for (Eigen::Index i = 0; i < size(); ++i) {
    if (result.degrees[i] > no_degree) continue;
    result.degrees[i] = 0;
    result.product.row(i).setZero();
  }
  return result;
}

absl::StatusOr<Matrix> AffinityOperator::Multiply(const Matrix& v, const Vector& degrees,
                                                  const ProductObserver& observer) const {
  Matrix product(size(), v.cols());
  PM_RETURN_IF_ERROR(Sums(v, &product, /*degrees=*/nullptr, observer));
  for (Eigen::Index i = 0; i < size(); ++i) {
    if (!(degrees[i] > 0)) product.row(i).setZero();
  }
  return product;
}

}  // namespace privatemail
