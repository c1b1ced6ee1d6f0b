// Products with an affinity matrix in linear time, within a proven error.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_FACTORED_AFFINITY_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_FACTORED_AFFINITY_H_

#include <memory>

#include "common/embedding/affinity_operator.h"
#include "common/numerics/exp_polynomial.h"
#include "common/numerics/point_source.h"
#include "common/numerics/row_share.h"

namespace privatemail {

// W_ij = g_i g_j exp(2 x_i.x_j / c) with g_i = exp(-|x_i|^2 / c), and where all |x_i|^2 are at most
// R^2, so are all |x_i.x_j|: in place of exp stands the polynomial p of exp_polynomial.h, and sums
// of p over all points follow from moments. What row i itself contributes, g_i^2 p(|x_i|^2) v_i, is
// taken off again. Two passes over the points a product: O(n k d^degree) time, O(k d^degree) memory
// a core beside the points.
//
// The points are added up in groups (row_groups.h), whose sums are added in order: as many cores,
// or processes that share the rows, as there are get the same bits. A process without the first
// group keeps the sums of all of its groups meanwhile.
//
// Error: |W~ v - W v|_i <= p.relative_error (W |v|)_i + FactoredRounding ((W |v|)_i + |v_i|).
class FactoredAffinity : public AffinityOperator {
 public:
  // points: n x d of squared length at most R^2; kernel_denominator: c > 0; polynomial: FitExp(..,
  // 2 / c, R^2); share: of which `points` are the rows here, null for all there are. All that is
  // multiplied and what comes out are of the rows here, too.
  FactoredAffinity(std::shared_ptr<const PointSource> points, double kernel_denominator,
                   const ExpPolynomial& polynomial,
                   std::shared_ptr<const RowShare> share = nullptr);

  Eigen::Index size() const override { return points_->rows(); }

 private:
  absl::Status Sums(const Matrix& v, Matrix* product, Vector* degrees,
                    const ProductObserver& observer) const override;

  std::shared_ptr<const PointSource> points_;
  std::shared_ptr<const RowShare> share_;
  double kernel_denominator_;
  ExpPolynomial polynomial_;
};

// The error's share from rounding for n points of d coordinates with a = 2 R^2 / c <=
// kMaxExpRange. Whatever adds to a sum passes through at most 256 + (blocks of a group) + (groups)
// + 4 d + 60 roundings of 2^-53 between the coordinates and the result, the kernels g among them.
// What the terms are worth beside the sum: p_0 + p_1 R^2 + p_2 R^4 = p(R^2) at most, against
// p(-R^2) at least, exp(2 a) times less; twice that covers the error of p itself.
double FactoredRounding(Eigen::Index n, Eigen::Index d, double a);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_FACTORED_AFFINITY_H_
