// Gaussian kernels (the papers' three conventions) and affinity matrices as linear operators.
// Pure functions of public or private rows; the caller knows which.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_AFFINITY_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_AFFINITY_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/matrix.h"

namespace privatemail {

// The denominator c of exp(-|x - y|^2 / c) for a bandwidth s (PRIVACY.md section 1).
// Numbers are those of v1.Kernel and enter a collection's digest.
enum class KernelConvention {
  kTwoSigmaSquared = 1,  // c = 2 s^2: second paper, appendix B; assumed by the bounds; the default
  kSigma = 2,            // c = s: second paper, equation 2
  kSigmaSquared = 3,     // c = s^2: the authors' released code
};

// c for a bandwidth s > 0.
double KernelDenominator(KernelConvention convention, double bandwidth);

// The dense n x n matrix W_ij = exp(-|x_i - x_j|^2 / c), W_ii = 0, for points n x d and c > 0.
// O(n^2) memory: for small n and as the reference for AffinityOperator.
Matrix GaussianAffinity(const Matrix& points, double kernel_denominator);

// Sets affinity (n x m) to exp(-|x_i - y_j|^2 / c) for rows x (n x d) and y (m x d), given their
// squared lengths.
// - d <= 4: from differences, as exact as GaussianAffinity.
// - d > 4: |x - y|^2 = max(0, |x|^2 + |y|^2 - 2 x.y), by one matrix product.
void AffinityBetween(const Matrix& x, const Vector& x_squared_norms, const Matrix& y,
                     const Vector& y_squared_norms, double kernel_denominator, Matrix* affinity);

// Called about ten times a second during a product, on the calling thread, with the share that is
// done. A status other than OK stops the product, which returns that status.
using ProductObserver = std::function<absl::Status(double share)>;

// Limits `observer`, which may write to a network, to one call a second.
ProductObserver OncePerSecond(ProductObserver observer);

// Products with W_ij = exp(-|x_i - x_j|^2 / c), W_ii = 0, without storing all n x n values.
// TiledAffinity is exact, FactoredAffinity has a proven error; PlanAffinity chooses.
// - Immutable after construction and thread-safe.
// - Uses all cores; the bits do not depend on their number.
// - Sees private data when a client builds it over its slots.
class AffinityOperator {
 public:
  virtual ~AffinityOperator() = default;

  virtual Eigen::Index size() const = 0;

  struct Product {
    Vector degrees;  // n: W 1
    Matrix product;  // n x k: W v
  };
  // W v and the degrees W 1 in one pass, for the first of several products. v: n x k. Errors: those
  // of the observer and of the source of the points.
  absl::StatusOr<Product> MultiplyWithDegrees(const Matrix& v,
                                              const ProductObserver& observer = nullptr) const;

  // W v for later products. degrees: from the first one; rows of degree zero become zero.
  absl::StatusOr<Matrix> Multiply(const Matrix& v, const Vector& degrees,
                                  const ProductObserver& observer = nullptr) const;

 private:
  // Sets product (n x k) to W v and, unless it is null, degrees (n) to W 1.
  virtual absl::Status Sums(const Matrix& v, Matrix* product, Vector* degrees,
                            const ProductObserver& observer) const = 0;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_AFFINITY_H_
