// How much noise a guarantee needs. Pure arithmetic, no sampling.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CALIBRATION_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CALIBRATION_H_

#include "absl/status/statusor.h"
#include "privatemail/guarantee.h"

namespace privatemail::client {

// What a calibration answers: the noise of every coordinate and what it gives.
struct CalibratedGaussian {
  double stddev = 0;
  Guarantee guarantee;
};
struct CalibratedLaplace {
  double scale = 0;  // b of the density exp(-|x| / b) / 2b; the standard deviation is sqrt(2) b
  Guarantee guarantee;
};

// Standard deviation for each unit of L2 sensitivity so that Gaussian noise is (epsilon, delta)-DP:
// the smallest s with Phi(1/2s - epsilon s) - e^epsilon Phi(-1/2s - epsilon s) <= delta (Balle and
// Wang, "Improving the Gaussian Mechanism for Differential Privacy", 2018, theorem 8), plus one
// part in 10^9, which covers the rounding of its own evaluation and the slack of the ledger's sums.
// Never too small. INVALID_ARGUMENT: epsilon is not finite and positive or lies outside [1e-9,
// 1e6]; delta outside (0, 1) or below 1e-300.
absl::StatusOr<double> AnalyticGaussianStddev(double epsilon, double delta);

// sqrt(2 ln(1.25 / delta)) / epsilon, as the papers print it (V1, V2 definition 3 with its misprint
// mended). Proven for epsilon < 1 only: Dwork and Roth, 2014, theorem A.1. Errors as above.
absl::StatusOr<double> PublishedGaussianStddev(double epsilon, double delta);

// Standard deviation of Gaussian noise that hides a value of this L2 sensitivity: their product,
// rounded up. INVALID_ARGUMENT: sensitivity is not finite and positive, or the product is no normal
// number.
absl::StatusOr<double> ScaledStddev(double stddev_per_unit, double sensitivity);

// Scale of Laplace noise that hides a value of this L1 sensitivity: sensitivity / epsilon, rounded
// up (Dwork, McSherry, Nissim, Smith 2006, proposition 1). INVALID_ARGUMENT: epsilon is not in
// [1e-9, 1e6], sensitivity is not finite and positive, or their quotient is no normal number.
absl::StatusOr<double> LaplaceScale(double epsilon, double sensitivity);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CALIBRATION_H_
