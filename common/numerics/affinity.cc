#include "common/numerics/affinity.h"

namespace privatemail {

double KernelDenominator(KernelConvention convention, double bandwidth) {
  switch (convention) {
    case KernelConvention::kTwoSigmaSquared:
      return 2 * bandwidth * bandwidth;
    case KernelConvention::kSigma:
      return bandwidth;
    case KernelConvention::kSigmaSquared:
      return bandwidth * bandwidth;
  }
  __builtin_unreachable();
}

Matrix GaussianAffinity(const Matrix& points, double kernel_denominator) {
  const Eigen::Index n = points.rows();
  Matrix affinity(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    affinity.row(i) =
        (-(points.rowwise() - points.row(i)).rowwise().squaredNorm().transpose().array() /
         kernel_denominator)
            .exp();
    affinity(i, i) = 0;
  }
  return affinity;
}

}  // namespace privatemail
