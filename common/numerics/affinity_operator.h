// Products with the affinity matrix of a cloud of points, on all cores.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_AFFINITY_OPERATOR_H_
#define PRIVATEMAIL_COMMON_NUMERICS_AFFINITY_OPERATOR_H_

#include <vector>

#include "common/base/matrix.h"

namespace privatemail {

// W with W_ij = exp(-|x_i - x_j|^2 / c), W_ii = 0, as something that multiplies. Exact (double) and
// the same bits on any number of cores. One product with k columns takes O(n^2 (d + k)) time, half
// of it saved by symmetry, and O(n (d + k)) memory: W itself is never held, unless it is small and
// asked for several products. Immutable after construction and thread-safe. Sees private data when
// a client builds it over its slots.
class AffinityOperator {
 public:
  // points: n x d, rows are points; kernel_denominator: c > 0; products: how often Multiply will be
  // called. With more than one and n <= 2,048 the upper half of W is kept (at most 18 MB) and only
  // the first product pays for the kernel.
  AffinityOperator(Matrix points, double kernel_denominator, int products = 1);

  Eigen::Index size() const { return points_.rows(); }

  struct Product {
    Vector degrees;  // n: W 1
    Matrix product;  // n x k: W v
  };
  // W v and the degrees W 1 in one pass. v: n x k.
  Product Multiply(const Matrix& v) const;

 private:
  // W is cut into square tiles; `row` and `column` count tiles.
  Eigen::Index Tiles() const;
  void FillTile(Eigen::Index row, Eigen::Index column, Matrix& tile) const;

  Matrix points_;
  Vector squared_norms_;
  double kernel_denominator_;
  std::vector<std::vector<Matrix>> kept_;  // [row][column - row]; empty when W is not kept
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_AFFINITY_OPERATOR_H_
