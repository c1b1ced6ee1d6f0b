// Sums over points from which any sum of a quadratic in x.y follows.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_MOMENTS_H_
#define PRIVATEMAIL_COMMON_NUMERICS_MOMENTS_H_

#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/exp_polynomial.h"

namespace privatemail {

// For k columns of weights w over points x_j: sum_j w_jc, sum_j w_jc x_j and sum_j w_jc x_j x_j',
// as far as a polynomial's degree needs them. For a polynomial p then sum_j w_jc p(x.x_j) = p_0
// M0_c
// + p_1 x.M1_c + p_2 x' M2_c x for any x. M2 is symmetric: only the blocks up to its diagonal are
// added up, and those off the diagonal count twice. O(k d^degree) memory. Sums of two parts of the
// points are the parts' sums.
class Moments {
 public:
  // degree: 0, 1 or 2.
  Moments(Eigen::Index dim, Eigen::Index columns, int degree);

  Eigen::Index columns() const { return zeroth_.size(); }

  // points: any number of rows x d; weights: as many rows x k.
  void Accumulate(const Matrix& points, const Matrix& weights);
  void Add(const Moments& other);

  // All sums side by side, to be added elsewhere, and back again.
  Vector Values() const;
  void SetValues(const Vector& values);

  // sum_j w_jc p(x_i.x_j) for every row i of points and every column c. The degree of p is at most
  // that of the moments.
  Matrix Evaluate(const Matrix& points, const ExpPolynomial& p) const;

 private:
  // M2 is cut into blocks of this many columns, of which each ends at the diagonal.
  Eigen::Index BlockBegin(size_t block) const;
  Eigen::Index BlockColumns(size_t block) const;

  Eigen::Index dim_;
  RowVector zeroth_;            // k
  Matrix first_;                // d x k, or empty
  std::vector<Matrix> second_;  // block: rows up to the diagonal x (k times the block's columns)
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_MOMENTS_H_
