#include "common/embedding/bordered_affinity.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/embedding/affinity.h"

namespace privatemail {
namespace {

constexpr int kRepeatedProducts = 2;  // makes TiledAffinity cache the matrix

}  // namespace

FixedRows::FixedRows(Matrix points, double kernel_denominator)
    : points_(std::move(points)),
      squared_norms_(points_.rowwise().squaredNorm()),
      kernel_denominator_(kernel_denominator),
      affinity_(points_, kernel_denominator, kRepeatedProducts) {}

absl::StatusOr<std::shared_ptr<const FixedRows>> FixedRows::Create(
    Matrix points, double kernel_denominator, const ProductObserver& observer) {
  const std::shared_ptr<FixedRows> fixed(new FixedRows(std::move(points), kernel_denominator));
  PM_ASSIGN_OR_RETURN(
      AffinityOperator::Product none,
      fixed->affinity_.MultiplyWithDegrees(Matrix(fixed->points_.rows(), 0), observer));
  fixed->degrees_ = std::move(none.degrees);
  return fixed;
}

BorderedAffinity::BorderedAffinity(const Border& border, std::shared_ptr<const FixedRows> fixed)
    : fixed_(std::move(fixed)), copy_of_(border.copy_of) {
  const Eigen::Index own = border.own.rows(), count = fixed_->points().rows();
  const Vector squared_norms = border.own.rowwise().squaredNorm();
  Matrix among_own, to_fixed;
  AffinityBetween(border.own, squared_norms, border.own, squared_norms,
                  fixed_->kernel_denominator(), &among_own);
  AffinityBetween(border.own, squared_norms, fixed_->points(), fixed_->squared_norms(),
                  fixed_->kernel_denominator(), &to_fixed);
  among_own.diagonal().setZero();
  from_own_.resize(own, own + count);
  from_own_ << among_own, to_fixed;
}

Matrix BorderedAffinity::Fold(const Matrix& v) const {
  const Eigen::Index own = from_own_.rows(), count = fixed_->points().rows();
  Matrix folded(own + count, v.cols());
  folded.bottomRows(count) = v.bottomRows(count);
  Eigen::Index next_own = 0;
  for (size_t row = 0; row < copy_of_.size(); ++row) {
    if (copy_of_[row] == Border::kOwn) {
      folded.row(next_own++) = v.row(row);
    } else {
      folded.row(own + copy_of_[row]) += v.row(row);
    }
  }
  return folded;
}

Matrix BorderedAffinity::Unfold(const Matrix& products, const Matrix& v) const {
  const Eigen::Index own = from_own_.rows(), count = fixed_->points().rows();
  const Eigen::Index border = size() - count;
  Matrix unfolded(size(), v.cols());
  unfolded.bottomRows(count) = products.bottomRows(count);
  Eigen::Index next_own = 0;
  for (Eigen::Index row = 0; row < border; ++row) {
    const Eigen::Index original = copy_of_[row];
    if (original == Border::kOwn) {
      unfolded.row(row) = products.row(next_own++);
      continue;
    }
    // The pair has affinity 1: each row gets the other's value and not its own.
    unfolded.row(row) = products.row(own + original) + v.row(border + original);
    unfolded.row(border + original) += v.row(row);
  }
  return unfolded;
}

absl::Status BorderedAffinity::Sums(const Matrix& v, Matrix* product, Vector* degrees,
                                    const ProductObserver& observer) const {
  // The degrees are the product with a column of ones.
  Matrix extended(size(), v.cols() + (degrees == nullptr ? 0 : 1));
  extended.leftCols(v.cols()) = v;
  if (degrees != nullptr) extended.rightCols(1).setOnes();

  const Eigen::Index own = from_own_.rows(), count = fixed_->points().rows();
  const Matrix folded = Fold(extended);
  Matrix sums(folded.rows(), folded.cols());
  sums.topRows(own).noalias() = from_own_ * folded;
  PM_ASSIGN_OR_RETURN(
      sums.bottomRows(count),
      fixed_->affinity().Multiply(folded.bottomRows(count), fixed_->degrees(), observer));
  sums.bottomRows(count).noalias() += from_own_.rightCols(count).transpose() * folded.topRows(own);
  const Matrix all = Unfold(sums, extended);
  *product = all.leftCols(v.cols());
  if (degrees != nullptr) *degrees = all.rightCols(1);
  return absl::OkStatus();
}

}  // namespace privatemail
