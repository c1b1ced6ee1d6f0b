// The first paper's sensitivity, as published: V1, theorem 1, corollary 1.1 and appendix E.
//
// NOT a proven guarantee (PRIVACY.md section 2): theorem 1 takes the smaller root of its tail
// equation, phi_min is negative, the union runs over infinitely many inputs, Laplace noise is
// scaled by an L2 sensitivity. Kept so that the published figures can be reproduced, under a name
// that says so.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_LAPLACE_SENSITIVITY_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_LAPLACE_SENSITIVITY_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace privatemail::client {

// Bounds on the row sums of the difference of two Laplacians: phi = n z_ij + z_ii.
struct PublishedLaplaceConstants {
  double z_ij_min = 0;
  double z_ij_max = 0;
  double z_ii_min = 0;
  double z_ii_max = 0;
  double phi_min = 0;
  double phi_max = 0;
};

// n rows, 1 <= n <= 2^40; bandwidth s of the convention 2 s^2. INVALID_ARGUMENT naming a field that
// is not finite or out of range; FAILED_PRECONDITION when a printed denominator is not positive or
// a constant is not finite.

// One-hot labels: appendix E, case 1.
absl::StatusOr<PublishedLaplaceConstants> PublishedLaplaceOneHot(int64_t n, double alpha,
                                                                 double bandwidth);
// Labels 0 .. largest_label: appendix E, equations 35, 36, 39 and 40.
absl::StatusOr<PublishedLaplaceConstants> PublishedLaplaceInteger(int64_t n, double alpha,
                                                                  double bandwidth,
                                                                  int64_t largest_label);

// ln of the largest beta that theorem 1 admits for every input: -4 k n. (It asks for -4 k (sum
// |z|^2)^2 / sum |z|^4, which Cauchy's inequality bounds by n.) beta itself is no double: e^-9600
// at the paper's settings. n, k >= 1.
absl::StatusOr<double> PublishedLaplaceLnBeta(int64_t n, int64_t k);

// Corollary 1.1: stddev_q / 2 sqrt(-ln_beta phi_max^4 / phi_min^2 - 2 sqrt(-k n ln_beta
// phi_min^4)), which the paper calls a bound on the sensitivity with probability 1 - sum of beta.
// ln_beta: finite, negative. start_stddev: the deviation of Q. FAILED_PRECONDITION when what is
// under the root is negative or the value is not finite.
absl::StatusOr<double> PublishedLaplaceSensitivity(const PublishedLaplaceConstants& constants,
                                                   int64_t n, int64_t k, double ln_beta,
                                                   double start_stddev);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_LAPLACE_SENSITIVITY_H_
