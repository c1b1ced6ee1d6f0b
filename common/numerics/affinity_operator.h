// Products with the affinity matrix of a cloud of points without ever holding that matrix.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_AFFINITY_OPERATOR_H_
#define PRIVATEMAIL_COMMON_NUMERICS_AFFINITY_OPERATOR_H_

#include "common/base/matrix.h"

namespace privatemail {

// W with W_ij = exp(-|x_i - x_j|^2 / c), W_ii = 0, as something that multiplies. Exact (double),
// computed tile by tile: O(n d) memory beside the tiles, O(n^2 (d + k)) time for one product with k
// columns, half of it saved by symmetry. Immutable after construction and thread-safe. Sees private
// data when a client builds it over its slots.
class AffinityOperator {
 public:
  // points: n x d, rows are points; kernel_denominator: c > 0.
  AffinityOperator(Matrix points, double kernel_denominator);

  Eigen::Index size() const { return points_.rows(); }

  struct Product {
    Vector degrees;  // n: W 1
    Matrix product;  // n x k: W v
  };
  // W v and the degrees W 1 in one pass. v: n x k.
  Product Multiply(const Matrix& v) const;

 private:
  Matrix points_;
  Vector squared_norms_;
  double kernel_denominator_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_AFFINITY_OPERATOR_H_
