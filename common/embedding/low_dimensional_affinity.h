// An affinity operator for points of few coordinates, in linear time with a proven error.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_LOW_DIMENSIONAL_AFFINITY_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_LOW_DIMENSIONAL_AFFINITY_H_

#include <optional>

#include "common/embedding/affinity.h"

namespace privatemail {

// Replaces exp(t), t = 2 x_i.x_j / c, in W_ij = g_i g_j exp(t), g_i = exp(-|x_i|^2 / c), by its
// Taylor polynomial of degree p, which is a product of features by the multinomial theorem:
//   sum_{m <= p} t^m / m! = sum_{|a| <= p} phi_a(x_i) phi_a(x_j),
//   phi_a(x) = prod_l (sqrt(2/c) x_l)^{a_l} / sqrt(a_l!)
// over the M = (p+k choose k) exponents a of the k coordinates. So W v = G F F' G v minus the rows'
// own terms.
//
//   memory  O(n M)
//   time    O(n M) a column, on the calling thread
//   error   |W~ v - W v|_i <= TaylorError (W |v|)_i + LowDimensionalRounding ((W |v|)_i + |v_i|)
class LowDimensionalAffinity : public AffinityOperator {
 public:
  // points: n x k, best centred, so that |t| is small; kernel_denominator: c > 0; degree: p >= 0.
  LowDimensionalAffinity(const Matrix& points, double kernel_denominator, int degree);

  // The number of features M.
  static double Features(Eigen::Index cols, int degree);

  Eigen::Index size() const override { return features_.rows(); }

 private:
  absl::Status Sums(const Matrix& v, Matrix* product, Vector* degrees,
                    const ProductObserver& observer) const override;

  Eigen::MatrixXd features_;  // n x M: G F
  Vector own_;                // n: diagonal of features_ features_'
};

// Relative error of the Taylor polynomial for |t| <= a: e^a a^{p+1} / (p+1)!. (The remainder is
// e^x t^{p+1} / (p+1)! for some x between 0 and t; e^x / e^t is at most 1 for t > 0, else e^a.)
double TaylorError(int degree, double a);

// The smallest degree up to kMaxTaylorDegree whose error is at most `tolerance`, or nullopt.
inline constexpr int kMaxTaylorDegree = 30;
std::optional<int> TaylorDegree(double a, double tolerance);

// The rounding part of the error for n points of k coordinates with |t| <= a.
// - A feature is a product of at most 3 p + 20 rounded factors including g, and passes n + M + 4
//   additions and products.
// - Magnitudes of the terms add up to at most exp(a); W is at least exp(-a).
double LowDimensionalRounding(Eigen::Index n, Eigen::Index k, int degree, double a);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_LOW_DIMENSIONAL_AFFINITY_H_
