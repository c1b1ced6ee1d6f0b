#include "common/numerics/bordered_affinity.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/numerics/affinity.h"

namespace privatemail {
namespace {

constexpr int kManyProducts = 2;  // so many that the matrix is worth being kept

}  // namespace

FixedRows::FixedRows(Matrix points, double kernel_denominator)
    : points_(std::move(points)),
      squared_norms_(points_.rowwise().squaredNorm()),
      kernel_denominator_(kernel_denominator),
      affinity_(points_, kernel_denominator, kManyProducts),
      // Rows in memory can always be read.
      degrees_(affinity_.MultiplyWithDegrees(Matrix(points_.rows(), 0)).value().degrees) {}

BorderedAffinity::BorderedAffinity(const Matrix& border, std::shared_ptr<const FixedRows> fixed)
    : fixed_(std::move(fixed)) {
  Matrix all(border.rows() + fixed_->points().rows(), border.cols());
  all << border, fixed_->points();
  Vector squared_norms(all.rows());
  squared_norms << border.rowwise().squaredNorm(), fixed_->squared_norms();
  AffinityBetween(border, squared_norms.head(border.rows()), all, squared_norms,
                  fixed_->kernel_denominator(), &from_border_);
  from_border_.leftCols(border.rows()).diagonal().setZero();
}

absl::Status BorderedAffinity::Sums(const Matrix& v, Matrix* product, Vector* degrees,
                                    const ProductObserver& observer) const {
  const Eigen::Index border = from_border_.rows(), fixed = size() - border;
  const auto to_fixed = from_border_.rightCols(fixed);
  product->resize(size(), v.cols());
  product->topRows(border).noalias() = from_border_ * v;
  PM_ASSIGN_OR_RETURN(
      product->bottomRows(fixed),
      fixed_->affinity().Multiply(v.bottomRows(fixed), fixed_->degrees(), observer));
  product->bottomRows(fixed).noalias() += to_fixed.transpose() * v.topRows(border);
  if (degrees == nullptr) return absl::OkStatus();
  degrees->resize(size());
  degrees->head(border) = from_border_.rowwise().sum();
  degrees->tail(fixed) = fixed_->degrees() + to_fixed.colwise().sum().transpose();
  return absl::OkStatus();
}

}  // namespace privatemail
