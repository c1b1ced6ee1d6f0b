#include "client/privacy/mechanisms/inference_privacy_calibration.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/sensitivity/rounding.h"
#include "common/base/exactly.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
namespace {

absl::Status CheckNorm(double p) {
  if (p >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("p must be at least 1, but is ", p));
}

// How far outputs of inputs within the ball can lie apart.
absl::StatusOr<double> Sensitivity(const HiddenBall& ball, double lipschitz) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("radius", ball.radius));
  PM_RETURN_IF_ERROR(CheckNorm(ball.p));
  PM_RETURN_IF_ERROR(CheckFinitePositive("Lipschitz constant", lipschitz));
  const double sensitivity = ball.radius * lipschitz * kRoundedUp;
  if (std::isnormal(sensitivity)) return sensitivity;
  return absl::InvalidArgumentError(
      absl::StrCat("radius times Lipschitz constant must be a normal number, but is ", ball.radius,
                   " * ", lipschitz, " = ", sensitivity));
}

Guarantee WithinBall(double epsilon, double delta, const HiddenBall& ball, bool proven,
                     std::string source) {
  return {.epsilon = epsilon,
          .delta = delta,
          .neighbours = "any two inputs at most the radius apart",
          .radius = ball.radius,
          .metric = absl::StrCat("l", Exactly(ball.p)),
          .proven = proven,
          .source = std::move(source)};
}

absl::StatusOr<CalibratedGaussian> Analytic(double epsilon, double delta, const HiddenBall& ball,
                                            double lipschitz, absl::string_view name) {
  PM_ASSIGN_OR_RETURN(const double sensitivity, Sensitivity(ball, lipschitz));
  PM_ASSIGN_OR_RETURN(const double per_unit, AnalyticGaussianStddev(epsilon, delta));
  PM_ASSIGN_OR_RETURN(const double stddev, ScaledStddev(per_unit, sensitivity));
  CalibratedGaussian noise{
      stddev, WithinBall(epsilon, delta, ball, true,
                         absl::StrCat("Inference Privacy, ", name,
                                      ", with the noise of Balle and Wang 2018, theorem 8"))};
  noise.guarantee.gaussian_mu = kRoundedUp / per_unit;
  return noise;
}

absl::StatusOr<CalibratedGaussian> Published(double epsilon, double delta, const HiddenBall& ball,
                                             double lipschitz, absl::string_view name) {
  PM_ASSIGN_OR_RETURN(const double sensitivity, Sensitivity(ball, lipschitz));
  PM_ASSIGN_OR_RETURN(const double per_unit, PublishedGaussianStddev(epsilon, delta));
  PM_ASSIGN_OR_RETURN(const double stddev, ScaledStddev(per_unit, sensitivity));
  return CalibratedGaussian{stddev,
                            WithinBall(epsilon, delta, ball, false,
                                       absl::StrCat("Inference Privacy, ", name,
                                                    ": as published, not a proven guarantee"))};
}

}  // namespace

absl::StatusOr<CalibratedLaplace> CalibrateLapOutput(double epsilon, const HiddenBall& ball,
                                                     double l1_lipschitz) {
  PM_ASSIGN_OR_RETURN(const double sensitivity, Sensitivity(ball, l1_lipschitz));
  PM_ASSIGN_OR_RETURN(const double scale, LaplaceScale(epsilon, sensitivity));
  return CalibratedLaplace{
      scale, WithinBall(epsilon, 0, ball, true, "Inference Privacy, Lap-Output (theorem 1)")};
}

absl::StatusOr<CalibratedGaussian> CalibrateGaussOutput(double epsilon, double delta,
                                                        const HiddenBall& ball,
                                                        double l2_lipschitz) {
  return Analytic(epsilon, delta, ball, l2_lipschitz, "Gauss-Output");
}

absl::StatusOr<CalibratedGaussian> CalibratePublishedGaussOutput(double epsilon, double delta,
                                                                 const HiddenBall& ball,
                                                                 double l2_lipschitz) {
  return Published(epsilon, delta, ball, l2_lipschitz, "Gauss-Output");
}

absl::StatusOr<CalibratedGaussian> CalibrateGaussInput(double epsilon, double delta,
                                                       const HiddenBall& ball, int64_t dimension) {
  PM_ASSIGN_OR_RETURN(const double lipschitz, IdentityLipschitz(dimension, ball.p));
  return Analytic(epsilon, delta, ball, lipschitz, "Gauss-Input");
}

absl::StatusOr<CalibratedGaussian> CalibratePublishedGaussInput(double epsilon, double delta,
                                                                const HiddenBall& ball,
                                                                int64_t dimension) {
  PM_ASSIGN_OR_RETURN(const double lipschitz, IdentityLipschitz(dimension, ball.p));
  return Published(epsilon, delta, ball, lipschitz, "Gauss-Input");
}

absl::StatusOr<double> IdentityLipschitz(int64_t dimension, double p) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("dimension", dimension, 1, int64_t{1} << 40));
  PM_RETURN_IF_ERROR(CheckNorm(p));
  if (p <= 2 || dimension == 1) return 1.0;
  return std::pow(static_cast<double>(dimension), .5 - 1 / p) * kRoundedUp;
}

}  // namespace privatemail::client
