// The papers' printed sensitivities. NOT proven guarantees (PRIVACY.md section 2): they exist to
// reproduce the published figures, under names that start with Published.
//
// - V2 (Gaussian), appendix B, equations 7, 8 and 29: the proof supports sqrt(M (n+1)) / 2 |Q|_F at
//   best, and multiplies negative lower bounds, which is no lower bound.
// - V1 (Laplace), theorem 1, corollary 1.1 and appendix E: theorem 1 takes the smaller root of its
//   tail equation, phi_min is negative, the union runs over infinitely many inputs, and Laplace
//   noise is scaled by an L2 sensitivity.
//
// settings: valid, of the inputs. INVALID_ARGUMENT: no rows, or a start of norm 0.
// FAILED_PRECONDITION: another kernel than two_sigma_squared; the printed formula gives no finite
// number, or for V2 no positive one.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_SENSITIVITY_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_SENSITIVITY_H_

#include "absl/status/statusor.h"
#include "client/privacy/sensitivity/sensitivity.h"
#include "common/embedding/smlq.h"

namespace privatemail::client {

// V2: D = M sqrt(n+1) / 2 |Q|_F with M = n M_ij + M_ii, labels 0 .. slots - 1.
absl::StatusOr<double> PublishedGaussianSensitivity(const EmbeddingSettings& settings,
                                                    const IterationInputs& inputs);

// V1, corollary 1.1: start_stddev / 2 sqrt(-ln_beta phi_max^4 / phi_min^2 - 2 sqrt(-k n ln_beta
// phi_min^4)), a bound with probability 1 - sum of beta, according to the paper. An L2 sensitivity,
// although V1 uses it as an L1 one.
// - phi = n z_ij + z_ii bounds the row sums of the difference of two Laplacians. One-hot label
//   graph: appendix E, case 1. Others: equations 35, 36, 39 and 40, labels 0 .. slots - 1.
// - ln_beta = -4 k n, of the largest beta that theorem 1 admits for every input. (The theorem needs
//   -4 k (sum |z|^2)^2 / sum |z|^4, which Cauchy's inequality bounds by n.) beta itself underflows:
//   e^-9600 at the paper's settings.
absl::StatusOr<double> PublishedLaplaceSensitivity(const EmbeddingSettings& settings,
                                                   const IterationInputs& inputs);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_PUBLISHED_SENSITIVITY_H_
