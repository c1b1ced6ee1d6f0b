#include "common/numerics/moments.h"

#include <algorithm>

namespace privatemail {
namespace {

// Columns of a block: saves 3/8 of the work at d = 128, wide enough for fast matrix products.
constexpr Eigen::Index kBlock = 32;

}  // namespace

Moments::Moments(Eigen::Index dim, Eigen::Index columns, int degree)
    : dim_(dim), zeroth_(RowVector::Zero(columns)) {
  if (degree >= 1) first_ = Matrix::Zero(dim, columns);
  if (degree < 2) return;
  second_.resize(static_cast<size_t>((dim + kBlock - 1) / kBlock));
  for (size_t block = 0; block < second_.size(); ++block) {
    second_[block] =
        Matrix::Zero(BlockBegin(block) + BlockColumns(block), columns * BlockColumns(block));
  }
}

Eigen::Index Moments::BlockBegin(size_t block) const {
  return static_cast<Eigen::Index>(block) * kBlock;
}

Eigen::Index Moments::BlockColumns(size_t block) const {
  return std::min(kBlock, dim_ - BlockBegin(block));
}

void Moments::Accumulate(const Matrix& points, const Matrix& weights) {
  zeroth_ += weights.colwise().sum();
  if (first_.size() > 0) first_.noalias() += points.transpose() * weights;
  Matrix weighted;
  for (size_t block = 0; block < second_.size(); ++block) {
    const Eigen::Index begin = BlockBegin(block), width = BlockColumns(block);
    weighted.resize(points.rows(), weights.cols() * width);
    for (Eigen::Index c = 0; c < weights.cols(); ++c) {
      weighted.middleCols(c * width, width) =
          weights.col(c).asDiagonal() * points.middleCols(begin, width);
    }
    second_[block].noalias() += points.leftCols(begin + width).transpose() * weighted;
  }
}

void Moments::Add(const Moments& other) {
  zeroth_ += other.zeroth_;
  first_ += other.first_;
  for (size_t block = 0; block < second_.size(); ++block) second_[block] += other.second_[block];
}

Matrix Moments::Evaluate(const Matrix& points, const ExpPolynomial& p) const {
  Matrix sums = (p.coefficients[0] * zeroth_).colwise().replicate(points.rows());
  if (p.degree >= 1) sums.noalias() += points * (p.coefficients[1] * first_);
  if (p.degree < 2) return sums;
  Matrix product;
  for (size_t block = 0; block < second_.size(); ++block) {
    const Eigen::Index begin = BlockBegin(block), width = BlockColumns(block);
    // Entries above the diagonal square also stand for their mirror images.
    Matrix doubled = p.coefficients[2] * second_[block];
    doubled.topRows(begin) *= 2;
    product.noalias() = points.leftCols(begin + width) * doubled;
    for (Eigen::Index c = 0; c < sums.cols(); ++c) {
      sums.col(c) += product.middleCols(c * width, width)
                         .cwiseProduct(points.middleCols(begin, width))
                         .rowwise()
                         .sum();
    }
  }
  return sums;
}

}  // namespace privatemail
