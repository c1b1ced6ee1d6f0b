// Gaussian kernels: the three conventions of the papers. Pure functions of public or private rows;
// the caller knows which.
#ifndef PRIVATEMAIL_COMMON_EMBEDDING_AFFINITY_H_
#define PRIVATEMAIL_COMMON_EMBEDDING_AFFINITY_H_

#include "common/base/matrix.h"

namespace privatemail {

// The denominator c of exp(-|x - y|^2 / c) for a bandwidth s (PRIVACY.md section 1).
// Numbers are those of v1.Kernel and enter a collection's digest.
enum class KernelConvention {
  kTwoSigmaSquared = 1,  // c = 2 s^2: appendix B of the second paper, which the bounds assume. Default.
  kSigma = 2,            // c = s: equation 2 of the second paper's text
  kSigmaSquared = 3,     // c = s^2: the authors' released code
};

// c for a bandwidth s > 0.
double KernelDenominator(KernelConvention convention, double bandwidth);

// The whole n x n matrix W_ij = exp(-|x_i - x_j|^2 / c), W_ii = 0, for points n x d and c > 0.
// O(n^2) memory: for small n and for checking AffinityOperator, which is what the system uses.
Matrix GaussianAffinity(const Matrix& points, double kernel_denominator);

// Sets affinity (n x m) to exp(-|x_i - y_j|^2 / c) for the rows of x (n x d) and y (m x d), given
// their squared lengths. Up to four columns from their differences, as exact as GaussianAffinity.
// Beyond, |x - y|^2 is taken as |x|^2 + |y|^2 - 2 x.y, and as 0 where that rounds to less: one
// matrix product and one pass.
void AffinityBetween(const Matrix& x, const Vector& x_squared_norms, const Matrix& y,
                     const Vector& y_squared_norms, double kernel_denominator, Matrix* affinity);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_EMBEDDING_AFFINITY_H_
