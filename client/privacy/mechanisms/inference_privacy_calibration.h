// How much noise Inference Privacy needs: {(epsilon, delta), radius} hides an input among all
// inputs at most `radius` from it in an l_p metric (Tian and Tandon, "Inference Privacy: Properties
// and Mechanisms", definitions 1 and 2).
//
// Output noise rests on a Lipschitz constant of the function that is released: two inputs r apart
// have outputs at most constant * r apart, so radius * constant is a sensitivity like any other and
// its mechanism gives the guarantee for every pair within the radius. lipschitz.h has a proven
// constant of the joint release. Input noise needs none but that of the identity.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_INFERENCE_PRIVACY_CALIBRATION_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_INFERENCE_PRIVACY_CALIBRATION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/privacy/mechanisms/calibration.h"

namespace privatemail::client {

// Inputs at most `radius` apart in the l_p metric are to be hard to tell apart.
struct HiddenBall {
  double radius = 0;  // finite and positive; on a bounded domain its diameter is local privacy
  double p = 2;       // 1 <= p, infinity included
};

// All return INVALID_ARGUMENT naming the field: radius, p (below 1 or NaN), a Lipschitz constant
// that is not finite and positive, epsilon and delta as in calibration.h (epsilon alone for
// Laplace), or a product that is no normal number. Guarantees carry the radius and "l<p>", p to
// the last digit, those of the analytic Gaussian gaussian_mu, too.

// Lap-Output (theorem 1): scale lipschitz * radius / epsilon, rounded up. Pure: delta = 0. Proven.
// lipschitz: from l_p to l_1.
absl::StatusOr<CalibratedLaplace> CalibrateLapOutput(double epsilon, const HiddenBall& ball,
                                                     double l1_lipschitz);

// Gauss-Output: the analytic Gaussian of sensitivity lipschitz * radius. Proven. lipschitz: from
// l_p to l_2.
absl::StatusOr<CalibratedGaussian> CalibrateGaussOutput(double epsilon, double delta,
                                                        const HiddenBall& ball,
                                                        double l2_lipschitz);

// As printed: sqrt(2 ln(1.25 / delta)) lipschitz * radius / epsilon. Proven for epsilon < 1 only,
// and so not called proven.
absl::StatusOr<CalibratedGaussian> CalibratePublishedGaussOutput(double epsilon, double delta,
                                                                 const HiddenBall& ball,
                                                                 double l2_lipschitz);

// Gauss-Input: noise on the input's `dimension` coordinates; whatever follows is post-processing.
absl::StatusOr<CalibratedGaussian> CalibrateGaussInput(double epsilon, double delta,
                                                       const HiddenBall& ball, int64_t dimension);
absl::StatusOr<CalibratedGaussian> CalibratePublishedGaussInput(double epsilon, double delta,
                                                                const HiddenBall& ball,
                                                                int64_t dimension);

// The Lipschitz constant of the identity from l_p to l_2 on `dimension` coordinates: 1 for p <= 2,
// dimension^(1/2 - 1/p) above (by the power mean inequality; reached at equal coordinates), rounded
// up. The document prints 1 for all p. INVALID_ARGUMENT: dimension < 1, p as above.
absl::StatusOr<double> IdentityLipschitz(int64_t dimension, double p);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_INFERENCE_PRIVACY_CALIBRATION_H_
