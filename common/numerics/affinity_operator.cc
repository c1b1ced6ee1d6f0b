#include "common/numerics/affinity_operator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/parallel.h"

namespace privatemail {
namespace {

// A tile of this many rows squared fits the second-level cache in double.
constexpr Eigen::Index kTile = 128;

// Every so many rows of tiles share one partial sum, and the partial sums are added in order: their
// number, unlike that of the cores, is the same everywhere, and so are the bits of the result.
constexpr Eigen::Index kStripes = 8;

constexpr Eigen::Index kMostRowsKept = 2048;

// Column by column, so that a row of a tile meets contiguous values while it is in the first-level
// cache.
using Columns = Eigen::MatrixXd;

// What one tile of W adds to the sums: tile v for its own rows and, off the diagonal, tile^T v for
// the rows that mirror it.
void AddTile(const Matrix& tile, Eigen::Index i, Eigen::Index j, const Columns& v, Columns& sums) {
  for (Eigen::Index row = 0; row < tile.rows(); ++row) {
    for (Eigen::Index c = 0; c < v.cols(); ++c) {
      sums(i + row, c) += tile.row(row).dot(v.col(c).segment(j, tile.cols()));
      if (i != j) {
        sums.col(c).segment(j, tile.cols()) += v(i + row, c) * tile.row(row).transpose();
      }
    }
  }
}

}  // namespace

AffinityOperator::AffinityOperator(Matrix points, double kernel_denominator, int products)
    : points_(std::move(points)),
      squared_norms_(points_.rowwise().squaredNorm()),
      kernel_denominator_(kernel_denominator) {
  if (products < 2 || size() > kMostRowsKept) return;
  kept_.resize(Tiles());
  ParallelFor(Tiles(), [this](int row) {
    kept_[row].resize(Tiles() - row);
    for (Eigen::Index column = row; column < Tiles(); ++column) {
      FillTile(row, column, kept_[row][column - row]);
    }
  });
}

Eigen::Index AffinityOperator::Tiles() const { return (size() + kTile - 1) / kTile; }

void AffinityOperator::FillTile(Eigen::Index row, Eigen::Index column, Matrix& tile) const {
  const Eigen::Index i = row * kTile, rows = std::min(kTile, size() - i);
  const Eigen::Index j = column * kTile, cols = std::min(kTile, size() - j);
  tile.noalias() = points_.middleRows(i, rows) * points_.middleRows(j, cols).transpose();
  const auto norms = squared_norms_.segment(j, cols).transpose().array();
  for (Eigen::Index r = 0; r < rows; ++r) {
    // |x - y|^2 = |x|^2 + |y|^2 - 2 x.y; rounding must not make it negative.
    auto w = tile.row(r).array();
    w = ((2 * w - norms - squared_norms_[i + r]).min(0.0) / kernel_denominator_).exp();
    if (i == j) w[r] = 0;
  }
}

AffinityOperator::Product AffinityOperator::Multiply(const Matrix& v) const {
  // The degrees are the product with a column of ones: one more column costs next to nothing.
  Columns extended(size(), v.cols() + 1);
  extended << v, Vector::Ones(size());
  const Eigen::Index stripes = std::min(kStripes, Tiles());
  std::vector<Columns> partial(stripes, Columns::Zero(size(), extended.cols()));
  ParallelFor(stripes, [&](int stripe) {
    Matrix tile;
    for (Eigen::Index row = stripe; row < Tiles(); row += stripes) {
      for (Eigen::Index column = row; column < Tiles(); ++column) {
        if (kept_.empty()) FillTile(row, column, tile);
        AddTile(kept_.empty() ? tile : kept_[row][column - row], row * kTile, column * kTile,
                extended, partial[stripe]);
      }
    }
  });
  Columns sums = Columns::Zero(size(), extended.cols());
  for (const Columns& part : partial) sums += part;
  // The vectorised exp stops short of zero. What it leaves of a row that is far from all others is
  // no neighbourhood: a degree that could hold no normal affinity is zero.
  const double no_degree = static_cast<double>(size()) * std::numeric_limits<double>::min();
  for (Eigen::Index i = 0; i < size(); ++i) {
    if (!(sums(i, v.cols()) > no_degree)) sums.row(i).setZero();
  }
  return {sums.rightCols(1), sums.leftCols(v.cols())};
}

}  // namespace privatemail
