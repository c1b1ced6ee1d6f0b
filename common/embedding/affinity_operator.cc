#include "common/embedding/affinity_operator.h"

#include <chrono>
#include <limits>
#include <utility>

#include "common/base/status_macros.h"

namespace privatemail {

ProductObserver OncePerSecond(ProductObserver observer) {
  using Clock = std::chrono::steady_clock;
  return [observer = std::move(observer), last = Clock::now()](double share) mutable {
    if (Clock::now() - last < std::chrono::seconds(1)) return absl::OkStatus();
    last = Clock::now();
    return observer(share);
  };
}

double ZeroDegreeThreshold(Eigen::Index rows) {
  return static_cast<double>(rows) * std::numeric_limits<double>::min();
}

absl::StatusOr<AffinityOperator::Product> AffinityOperator::MultiplyWithDegrees(
    const Matrix& v, const ProductObserver& observer) const {
  Product result{Vector(size()), Matrix(size(), v.cols())};
  PM_RETURN_IF_ERROR(Sums(v, &result.product, &result.degrees, observer));
  const double no_degree = ZeroDegreeThreshold(size());
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
