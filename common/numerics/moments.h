// Weighted moments of points up to degree 2.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_MOMENTS_H_
#define PRIVATEMAIL_COMMON_NUMERICS_MOMENTS_H_

#include <vector>

#include "common/base/matrix.h"
#include "common/numerics/exp_polynomial.h"

namespace privatemail {

// Moments of points x_j under k columns of weights w:
//   M0_c = sum_j w_jc,  M1_c = sum_j w_jc x_j,  M2_c = sum_j w_jc x_j x_j'
// For a polynomial p of at most their degree and any x:
//   sum_j w_jc p(x.x_j) = p_0 M0_c + p_1 x.M1_c + p_2 x' M2_c x
// M2 is symmetric: only blocks up to its diagonal are stored, and those off it count twice.
// O(k d^degree) memory. Moments of disjoint sets of points add up.
class Moments {
 public:
  // degree: 0, 1 or 2.
  Moments(Eigen::Index dim, Eigen::Index columns, int degree);

  Eigen::Index columns() const { return zeroth_.size(); }

  // points: any number of rows x d; weights: as many rows x k.
  void Accumulate(const Matrix& points, const Matrix& weights);
  void Add(const Moments& other);

  // sum_j w_jc p(x_i.x_j) for each row i of points and column c. The degree of p is at most that of
  // the moments.
  Matrix Evaluate(const Matrix& points, const ExpPolynomial& p) const;

 private:
  // M2 is stored in blocks of columns, each ending at the diagonal.
  Eigen::Index BlockBegin(size_t block) const;
  Eigen::Index BlockColumns(size_t block) const;

  Eigen::Index dim_;
  RowVector zeroth_;            // k
  Matrix first_;                // d x k, or empty
  std::vector<Matrix> second_;  // block: rows up to the diagonal x (k * block columns)
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_MOMENTS_H_
