// Noise calibration: the standard deviation or scale per guarantee. No sampling.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CALIBRATION_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CALIBRATION_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace privatemail::client {

// Standard deviation per unit of L2 sensitivity for (epsilon, delta)-DP: the smallest s with
//   Phi(1/2s - epsilon s) - e^epsilon Phi(-1/2s - epsilon s) <= delta
// (Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy", 2018, theorem 8),
// plus one part in 10^9, which covers the rounding of its evaluation and the slack of the ledger's
// sums. Never too small. INVALID_ARGUMENT: epsilon outside [1e-9, 1e6], delta outside [1e-300, 1).
absl::StatusOr<double> AnalyticGaussianStddev(double epsilon, double delta);

// sqrt(2 ln(1.25 / delta)) / epsilon, as printed (V1, V2 definition 3 with its misprint corrected).
// Proven for epsilon < 1 only: Dwork and Roth, 2014, theorem A.1. Errors as above.
absl::StatusOr<double> PublishedGaussianStddev(double epsilon, double delta);

// Laplace scale: L1 sensitivity / epsilon, rounded up (Dwork, McSherry, Nissim, Smith 2006,
// proposition 1). INVALID_ARGUMENT: epsilon outside [1e-9, 1e6], sensitivity not finite and
// positive, or the quotient not a normal number.
absl::StatusOr<double> LaplaceScale(double epsilon, double sensitivity);

// Lipschitz constant of the identity from l_p to l_2 on `dimension` coordinates: 1 for p <= 2, and
// dimension^(1/2 - 1/p) above (power mean inequality; reached at equal coordinates), rounded up.
// The document prints 1 for all p. INVALID_ARGUMENT: dimension outside [1, 2^40]; p below 1 or NaN.
absl::StatusOr<double> IdentityLipschitz(int64_t dimension, double p);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CALIBRATION_H_
