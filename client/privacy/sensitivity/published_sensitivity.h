// The papers' printed sensitivities. NOT proven guarantees (PRIVACY.md section 2): they exist to
// reproduce the published figures, under names that start with Published.
//
// - V2 (Gaussian), appendix B, equations 7, 8 and 29: the proof supports sqrt(M (n+1)) / 2 |Q|_F at
//   best, and multiplies negative lower bounds, which is no lower bound.
// - V1 (Laplace), theorem 1, corollary 1.1 and appendix E: theorem 1 takes the smaller root of its
//   tail equation, phi_min is negative, the union runs over infinitely many inputs, and Laplace
//   noise is scaled by an L2 sensitivity.
//
// Common errors: INVALID_ARGUMENT naming a field that is not finite or out of range;
// FAILED_PRECONDITION: the printed formula gives no finite number, or for V2 no positive one.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_SENSITIVITY_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_SENSITIVITY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/privacy/sensitivity/sensitivity.h"
#include "common/embedding/smlq.h"

namespace privatemail::client {

// V2: M = n M_ij + M_ii and D = M sqrt(n+1) / 2 |Q|_F.
struct PublishedGaussianBound {
  double m_ij = 0;
  double m_ii = 0;
  double m = 0;
  double sensitivity_as_printed = 0;
  double sensitivity_supported_by_proof = 0;  // sqrt(M (n+1)) / 2 |Q|_F; NaN if M is negative
};
// n: rows, 1 to 2^40; bandwidth: s of the convention 2 s^2; labels: 0 .. largest_label;
// frobenius_norm: of Q.
absl::StatusOr<PublishedGaussianBound> PublishedGaussianSensitivity(int64_t n, double alpha,
                                                                    double bandwidth,
                                                                    int64_t largest_label,
                                                                    double frobenius_norm);

// V1: bounds on the row sums of the difference of two Laplacians, phi = n z_ij + z_ii.
struct PublishedLaplaceConstants {
  double z_ij_min = 0;
  double z_ij_max = 0;
  double z_ii_min = 0;
  double z_ii_max = 0;
  double phi_min = 0;
  double phi_max = 0;
};
// One-hot labels: appendix E, case 1. n and bandwidth as above.
absl::StatusOr<PublishedLaplaceConstants> PublishedLaplaceOneHot(int64_t n, double alpha,
                                                                 double bandwidth);
// Labels 0 .. largest_label: appendix E, equations 35, 36, 39 and 40.
absl::StatusOr<PublishedLaplaceConstants> PublishedLaplaceInteger(int64_t n, double alpha,
                                                                  double bandwidth,
                                                                  int64_t largest_label);

// ln of the largest beta that theorem 1 admits for every input: -4 k n. (The theorem needs
// -4 k (sum |z|^2)^2 / sum |z|^4, which Cauchy's inequality bounds by n.) beta itself underflows:
// e^-9600 at the paper's settings. n, k >= 1.
absl::StatusOr<double> PublishedLaplaceLnBeta(int64_t n, int64_t k);

// Corollary 1.1: start_stddev / 2 sqrt(-ln_beta phi_max^4 / phi_min^2 - 2 sqrt(-k n ln_beta
// phi_min^4)), a bound with probability 1 - sum of beta, according to the paper. ln_beta: finite,
// negative. start_stddev: of the entries of Q.
absl::StatusOr<double> PublishedLaplaceSensitivity(const PublishedLaplaceConstants& constants,
                                                   int64_t n, int64_t k, double ln_beta,
                                                   double start_stddev);

// The printed sensitivities of a release. `inputs` must follow `settings`; n is its number of rows,
// slots and anchors, and labels count as 0 .. slots - 1. FAILED_PRECONDITION also for a kernel
// other than two_sigma_squared, the only one that the papers cover.

// V2, PublishedGaussianBound::sensitivity_as_printed of this start.
absl::StatusOr<double> PublishedGaussianReleaseSensitivity(const EmbeddingSettings& settings,
                                                           const IterationInputs& inputs);

// V1, at the largest beta of theorem 1 and the start_stddev of the settings; constants by label
// graph, one-hot or integer. An L2 sensitivity, although V1 uses it as an L1 one.
absl::StatusOr<double> PublishedLaplaceReleaseSensitivity(const EmbeddingSettings& settings,
                                                          const IterationInputs& inputs);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_SENSITIVITY_H_
