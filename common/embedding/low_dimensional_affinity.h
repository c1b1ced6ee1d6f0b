// Products with the affinity matrix of points of few coordinates, in linear time.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_LOW_DIMENSIONAL_AFFINITY_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_LOW_DIMENSIONAL_AFFINITY_H_

#include <optional>

#include "common/embedding/affinity_operator.h"

namespace privatemail {

// W_ij = g_i g_j exp(t), g_i = exp(-|x_i|^2 / c), t = 2 x_i.x_j / c. In place of exp stands its
// Taylor polynomial of degree p. By the multinomial theorem that is a product of features:
//   sum_{m <= p} t^m / m! = sum_{|a| <= p} phi_a(x_i) phi_a(x_j),
//   phi_a(x) = prod_l (sqrt(2/c) x_l)^{a_l} / sqrt(a_l!)
// over all exponents a of the k coordinates. There are M = (p+k choose k) of them, so W v is G F F'
// G v without the rows' own terms: O(n M) memory and O(n M) time a column, on the caller's thread.
//
// Error: |W~ v - W v|_i <= TaylorError (W |v|)_i + LowDimensionalRounding ((W |v|)_i + |v_i|).
class LowDimensionalAffinity : public AffinityOperator {
 public:
  // points: n x k, best around the origin, where |t| is smallest; kernel_denominator: c > 0;
  // degree: p >= 0.
  LowDimensionalAffinity(const Matrix& points, double kernel_denominator, int degree);

  // M.
  static double Features(Eigen::Index cols, int degree);

  Eigen::Index size() const override { return features_.rows(); }

 private:
  absl::Status Sums(const Matrix& v, Matrix* product, Vector* degrees,
                    const ProductObserver& observer) const override;

  Eigen::MatrixXd features_;  // G F, a feature's values side by side
  Vector own_;                // of the diagonal of features_ features_'
};

// The degree's relative error for |t| <= a. The rest of the series is e^x t^{p+1} / (p+1)! for some
// x between 0 and t, and e^x / e^t is at most 1 for t > 0 and e^a otherwise: e^a a^{p+1} / (p+1)!.
double TaylorError(int degree, double a);

// The smallest degree whose error is at most `tolerance`; nothing where that takes more.
inline constexpr int kMaxTaylorDegree = 30;
std::optional<int> TaylorDegree(double a, double tolerance);

// The error's share from rounding for n points of k coordinates with |t| <= a. A feature is a
// product of at most 3 p + 20 rounded factors, g among them; it passes through n + M + 4 additions
// and products. The terms' magnitudes add up to exp(a) at most, W has at least exp(-a) of them.
double LowDimensionalRounding(Eigen::Index n, Eigen::Index k, int degree, double a);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_LOW_DIMENSIONAL_AFFINITY_H_
