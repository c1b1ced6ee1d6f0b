#include "common/numerics/affinity_operator.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace privatemail {
namespace {

// A tile of this many rows squared fits the second-level cache in double.
constexpr Eigen::Index kTile = 128;

}  // namespace

AffinityOperator::AffinityOperator(Matrix points, double kernel_denominator)
    : points_(std::move(points)),
      squared_norms_(points_.rowwise().squaredNorm()),
      kernel_denominator_(kernel_denominator) {}

AffinityOperator::Product AffinityOperator::Multiply(const Matrix& v) const {
  const Eigen::Index n = size();
  // The degrees are the product with a column of ones: one more column costs next to nothing.
  Matrix extended(n, v.cols() + 1);
  extended << v, Vector::Ones(n);
  Matrix sums = Matrix::Zero(n, extended.cols());
  Matrix tile;
  for (Eigen::Index i = 0; i < n; i += kTile) {
    const Eigen::Index rows = std::min(kTile, n - i);
    for (Eigen::Index j = i; j < n; j += kTile) {
      const Eigen::Index cols = std::min(kTile, n - j);
      tile.noalias() = points_.middleRows(i, rows) * points_.middleRows(j, cols).transpose();
      // |x - y|^2 = |x|^2 + |y|^2 - 2 x.y; rounding must not make it negative. Row by row, because
      // what is broadcast over a whole tile is not vectorised.
      const auto norms = squared_norms_.segment(j, cols).transpose().array();
      for (Eigen::Index row = 0; row < rows; ++row) {
        auto values = tile.row(row).array();
        values =
            ((2 * values - norms - squared_norms_[i + row]).min(0.0) / kernel_denominator_).exp();
      }
      if (i == j) tile.diagonal().setZero();
      sums.middleRows(i, rows).noalias() += tile * extended.middleRows(j, cols);
      if (i != j) {
        sums.middleRows(j, cols).noalias() += tile.transpose() * extended.middleRows(i, rows);
      }
    }
  }
  // The vectorised exp stops short of zero. What it leaves of a row that is far from all others is
  // no neighbourhood: a degree that could hold no normal affinity is zero.
  const double no_degree = static_cast<double>(n) * std::numeric_limits<double>::min();
  for (Eigen::Index i = 0; i < n; ++i) {
    if (!(sums(i, v.cols()) > no_degree)) sums.row(i).setZero();
  }
  return {sums.rightCols(1), sums.leftCols(v.cols())};
}

}  // namespace privatemail
