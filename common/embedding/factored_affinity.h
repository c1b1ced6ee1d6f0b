// An affinity operator in linear time with a proven error.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_FACTORED_AFFINITY_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_FACTORED_AFFINITY_H_

#include <memory>

#include "common/embedding/affinity.h"
#include "common/numerics/exp_polynomial.h"
#include "common/numerics/point_source.h"

namespace privatemail {

// Factors W_ij = g_i g_j exp(2 x_i.x_j / c), g_i = exp(-|x_i|^2 / c), and replaces exp by a
// polynomial p (exp_polynomial.h) on [-R^2, R^2], where |x_i|^2 <= R^2 for all i. Sums of p over
// all points follow from moments; a row's own term g_i^2 p(|x_i|^2) v_i is subtracted.
//
//   n points, d coordinates, k columns
//   time    O(n k d^degree), two passes over the points a product
//   memory  O(k d^degree) a core beside the points
//   error   |W~ v - W v|_i <= p.relative_error (W |v|)_i + FactoredRounding ((W |v|)_i + |v_i|)
//
// Points are summed in groups (row_groups.h): any number of cores gets the same bits.
class FactoredAffinity : public AffinityOperator {
 public:
  // points: n x d, squared lengths at most R^2; kernel_denominator: c > 0; polynomial:
  // FitExp(.., 2 / c, R^2).
  FactoredAffinity(std::shared_ptr<const PointSource> points, double kernel_denominator,
                   const ExpPolynomial& polynomial);

  Eigen::Index size() const override { return points_->rows(); }

 private:
  absl::Status Sums(const Matrix& v, Matrix* product, Vector* degrees,
                    const ProductObserver& observer) const override;

  std::shared_ptr<const PointSource> points_;
  double kernel_denominator_;
  ExpPolynomial polynomial_;
};

// The rounding part of the error for n points of d coordinates, a = 2 R^2 / c <= kMaxExpRange.
// - A term passes at most 256 + (blocks of a group) + (groups) + 4 d + 60 roundings of 2^-53,
//   including those of the kernels g.
// - Relative to the sum, terms add up to at most p(R^2) / p(-R^2) <= exp(2 a); a factor of 2 covers
//   the error of p itself.
double FactoredRounding(Eigen::Index n, Eigen::Index d, double a);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_FACTORED_AFFINITY_H_
