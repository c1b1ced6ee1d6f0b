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
  // Column by column, so that a row of a tile meets contiguous values while it is in the
  // first-level cache.
  Eigen::MatrixXd extended(n, v.cols() + 1);
  extended << v, Vector::Ones(n);
  Eigen::MatrixXd sums = Eigen::MatrixXd::Zero(n, extended.cols());
  Matrix tile;
  for (Eigen::Index i = 0; i < n; i += kTile) {
    const Eigen::Index rows = std::min(kTile, n - i);
    for (Eigen::Index j = i; j < n; j += kTile) {
      const Eigen::Index cols = std::min(kTile, n - j);
      tile.noalias() = points_.middleRows(i, rows) * points_.middleRows(j, cols).transpose();
      const auto norms = squared_norms_.segment(j, cols).transpose().array();
      for (Eigen::Index row = 0; row < rows; ++row) {
        // |x - y|^2 = |x|^2 + |y|^2 - 2 x.y; rounding must not make it negative.
        auto w = tile.row(row).array();
        w = ((2 * w - norms - squared_norms_[i + row]).min(0.0) / kernel_denominator_).exp();
        if (i == j) w[row] = 0;
        for (Eigen::Index c = 0; c < extended.cols(); ++c) {
          sums(i + row, c) += tile.row(row).dot(extended.col(c).segment(j, cols));
          if (i != j)
            sums.col(c).segment(j, cols) += extended(i + row, c) * tile.row(row).transpose();
        }
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
