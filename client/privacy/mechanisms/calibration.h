// Noise calibration: the standard deviation or scale that a guarantee needs. No sampling.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CALIBRATION_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CALIBRATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "privatemail/guarantee.h"

namespace privatemail::client {

// Noise of every coordinate, and its guarantee.
struct CalibratedGaussian {
  double stddev = 0;
  Guarantee guarantee;
};
struct CalibratedLaplace {
  double scale = 0;  // b of the density exp(-|x| / b) / 2b; the standard deviation is sqrt(2) b
  Guarantee guarantee;
};

// Standard deviation per unit of L2 sensitivity for (epsilon, delta)-DP: the smallest s with
//   Phi(1/2s - epsilon s) - e^epsilon Phi(-1/2s - epsilon s) <= delta
// (Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy", 2018, theorem 8),
// plus one part in 10^9, which covers the rounding of its evaluation and the slack of the ledger's
// sums. Never too small. INVALID_ARGUMENT: epsilon outside [1e-9, 1e6], delta outside [1e-300, 1).
absl::StatusOr<double> AnalyticGaussianStddev(double epsilon, double delta);

// sqrt(2 ln(1.25 / delta)) / epsilon, as printed (V1, V2 definition 3 with its misprint corrected).
// Proven for epsilon < 1 only: Dwork and Roth, 2014, theorem A.1. Errors as above.
absl::StatusOr<double> PublishedGaussianStddev(double epsilon, double delta);

// stddev_per_unit * L2 sensitivity, rounded up. INVALID_ARGUMENT: sensitivity not finite and
// positive, or the product not a normal number.
absl::StatusOr<double> ScaledStddev(double stddev_per_unit, double sensitivity);

// Laplace scale: L1 sensitivity / epsilon, rounded up (Dwork, McSherry, Nissim, Smith 2006,
// proposition 1). INVALID_ARGUMENT: epsilon outside [1e-9, 1e6], sensitivity not finite and
// positive, or the quotient not a normal number.
absl::StatusOr<double> LaplaceScale(double epsilon, double sensitivity);

// Inference Privacy {(epsilon, delta), radius}: hides an input among all inputs at most `radius`
// from it in an l_p metric (Tian and Tandon, "Inference Privacy: Properties and Mechanisms",
// definitions 1 and 2).
// - Noise on the output needs a Lipschitz constant of the released function: radius * constant is a
//   sensitivity, whose mechanism gives the guarantee for every pair within the radius. lipschitz.h
//   has the constant of the joint release.
// - Noise on the input needs that of the identity only; all that follows is post-processing.
//
// Guarantees carry the radius and the metric "l<p>", p exact; analytic Gaussian ones gaussian_mu.
// INVALID_ARGUMENT naming the field: radius not finite and positive; p below 1 or NaN; a Lipschitz
// constant not finite and positive; epsilon or delta as above; a product not a normal number.

// Neighbours: inputs at most `radius` apart in the l_p metric.
struct NeighbourBall {
  double radius = 0;  // finite and positive; on a bounded domain its diameter is local privacy
  double p = 2;       // 1 <= p, infinity included
};

// Lap-Output (theorem 1): scale l1_lipschitz * radius / epsilon, rounded up. delta = 0. Proven.
// l1_lipschitz: from l_p to l_1.
absl::StatusOr<CalibratedLaplace> CalibrateLapOutput(double epsilon, const NeighbourBall& ball,
                                                     double l1_lipschitz);

// Gauss-Output: the analytic Gaussian of sensitivity l2_lipschitz * radius. Proven. l2_lipschitz:
// from l_p to l_2.
absl::StatusOr<CalibratedGaussian> CalibrateGaussOutput(double epsilon, double delta,
                                                        const NeighbourBall& ball,
                                                        double l2_lipschitz);

// As printed: sqrt(2 ln(1.25 / delta)) l2_lipschitz * radius / epsilon. Proven for epsilon < 1
// only, so never marked proven.
absl::StatusOr<CalibratedGaussian> CalibratePublishedGaussOutput(double epsilon, double delta,
                                                                 const NeighbourBall& ball,
                                                                 double l2_lipschitz);

// Gauss-Input: noise on the input's `dimension` coordinates.
absl::StatusOr<CalibratedGaussian> CalibrateGaussInput(double epsilon, double delta,
                                                       const NeighbourBall& ball,
                                                       int64_t dimension);
absl::StatusOr<CalibratedGaussian> CalibratePublishedGaussInput(double epsilon, double delta,
                                                                const NeighbourBall& ball,
                                                                int64_t dimension);

// Lipschitz constant of the identity from l_p to l_2 on `dimension` coordinates: 1 for p <= 2, and
// dimension^(1/2 - 1/p) above (power mean inequality; reached at equal coordinates), rounded up.
// The document prints 1 for all p. INVALID_ARGUMENT: dimension outside [1, 2^40], p as above.
absl::StatusOr<double> IdentityLipschitz(int64_t dimension, double p);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CALIBRATION_H_
