#include "client/privacy/mechanisms/calibration.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/gaussian_tradeoff.h"
#include "client/privacy/accounting/guarantee_fields.h"
#include "client/privacy/sensitivity/rounding.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
namespace {

absl::Status CheckNorm(double p) {
  if (p >= 1) return absl::OkStatus();
  return InvalidField("p", absl::StrCat("must be at least 1, but is ", p));
}

// Largest distance between outputs of inputs in the ball.
absl::StatusOr<double> BallSensitivity(const NeighbourBall& ball, double lipschitz) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("radius", ball.radius));
  PM_RETURN_IF_ERROR(CheckNorm(ball.p));
  PM_RETURN_IF_ERROR(CheckFinitePositive("Lipschitz constant", lipschitz));
  const double sensitivity = ball.radius * lipschitz * kRoundedUp;
  if (std::isnormal(sensitivity)) return sensitivity;
  return absl::InvalidArgumentError(
      absl::StrCat("radius times Lipschitz constant must be a normal number, but is ", ball.radius,
                   " * ", lipschitz, " = ", sensitivity));
}

Guarantee BallGuarantee(double epsilon, double delta, const NeighbourBall& ball, bool proven,
                        std::string source) {
  return {.epsilon = epsilon,
          .delta = delta,
          .neighbours = "any two inputs at most the radius apart",
          .radius = ball.radius,
          .metric = absl::StrCat("l", FormatExact(ball.p)),
          .proven = proven,
          .source = std::move(source)};
}

absl::StatusOr<CalibratedGaussian> CalibrateBall(double epsilon, double delta,
                                                 const NeighbourBall& ball, double lipschitz,
                                                 absl::string_view name, bool published) {
  PM_ASSIGN_OR_RETURN(const double sensitivity, BallSensitivity(ball, lipschitz));
  PM_ASSIGN_OR_RETURN(const double per_unit, published ? PublishedGaussianStddev(epsilon, delta)
                                                       : AnalyticGaussianStddev(epsilon, delta));
  PM_ASSIGN_OR_RETURN(const double stddev, ScaledStddev(per_unit, sensitivity));
  const char* const source = published ? ": as published, not a proven guarantee"
                                       : ", with the noise of Balle and Wang 2018, theorem 8";
  CalibratedGaussian noise{stddev,
                           BallGuarantee(epsilon, delta, ball, !published,
                                         absl::StrCat("Inference Privacy, ", name, source))};
  if (!published) noise.guarantee.gaussian_mu = kRoundedUp / per_unit;
  return noise;
}

}  // namespace

absl::StatusOr<double> AnalyticGaussianStddev(double epsilon, double delta) {
  PM_RETURN_IF_ERROR(CheckEpsilon(epsilon));
  PM_RETURN_IF_ERROR(CheckDelta(delta));
  const long double target = std::log(static_cast<long double>(delta));
  long double low = 1;
  while (LnGaussianDelta(epsilon, 1 / low) <= target) low /= 2;
  long double high = 2 * low;
  while (LnGaussianDelta(epsilon, 1 / high) > target) high *= 2;
  for (int i = 0; i < 80 && high - low > 1e-15L * high; ++i) {
    const long double middle = (low + high) / 2;
    (LnGaussianDelta(epsilon, 1 / middle) > target ? low : high) = middle;
  }
  return static_cast<double>(high * (1 + 1e-9L));
}

absl::StatusOr<double> PublishedGaussianStddev(double epsilon, double delta) {
  PM_RETURN_IF_ERROR(CheckEpsilon(epsilon));
  PM_RETURN_IF_ERROR(CheckDelta(delta));
  return std::sqrt(2 * std::log(1.25 / delta)) / epsilon;
}

absl::StatusOr<double> ScaledStddev(double stddev_per_unit, double sensitivity) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("sensitivity", sensitivity));
  const double stddev = stddev_per_unit * sensitivity * kRoundedUp;
  if (std::isnormal(stddev)) return stddev;
  return absl::InvalidArgumentError(
      absl::StrCat("the noise's standard deviation must be a normal number, but sensitivity ",
                   sensitivity, " times ", stddev_per_unit, " makes it ", stddev));
}

absl::StatusOr<double> LaplaceScale(double epsilon, double sensitivity) {
  PM_RETURN_IF_ERROR(CheckEpsilon(epsilon));
  PM_RETURN_IF_ERROR(CheckFinitePositive("sensitivity", sensitivity));
  const double scale = sensitivity / epsilon * kRoundedUp;
  if (std::isnormal(scale)) return scale;
  return absl::InvalidArgumentError(
      absl::StrCat("the noise's scale must be a normal number, but sensitivity ", sensitivity,
                   " and epsilon ", epsilon, " make it ", scale));
}

absl::StatusOr<CalibratedLaplace> CalibrateLapOutput(double epsilon, const NeighbourBall& ball,
                                                     double l1_lipschitz) {
  PM_ASSIGN_OR_RETURN(const double sensitivity, BallSensitivity(ball, l1_lipschitz));
  PM_ASSIGN_OR_RETURN(const double scale, LaplaceScale(epsilon, sensitivity));
  return CalibratedLaplace{
      scale, BallGuarantee(epsilon, 0, ball, true, "Inference Privacy, Lap-Output (theorem 1)")};
}

absl::StatusOr<CalibratedGaussian> CalibrateGaussOutput(double epsilon, double delta,
                                                        const NeighbourBall& ball,
                                                        double l2_lipschitz) {
  return CalibrateBall(epsilon, delta, ball, l2_lipschitz, "Gauss-Output", /*published=*/false);
}

absl::StatusOr<CalibratedGaussian> CalibratePublishedGaussOutput(double epsilon, double delta,
                                                                 const NeighbourBall& ball,
                                                                 double l2_lipschitz) {
  return CalibrateBall(epsilon, delta, ball, l2_lipschitz, "Gauss-Output", /*published=*/true);
}

absl::StatusOr<CalibratedGaussian> CalibrateGaussInput(double epsilon, double delta,
                                                       const NeighbourBall& ball,
                                                       int64_t dimension) {
  PM_ASSIGN_OR_RETURN(const double lipschitz, IdentityLipschitz(dimension, ball.p));
  return CalibrateBall(epsilon, delta, ball, lipschitz, "Gauss-Input", /*published=*/false);
}

absl::StatusOr<CalibratedGaussian> CalibratePublishedGaussInput(double epsilon, double delta,
                                                                const NeighbourBall& ball,
                                                                int64_t dimension) {
  PM_ASSIGN_OR_RETURN(const double lipschitz, IdentityLipschitz(dimension, ball.p));
  return CalibrateBall(epsilon, delta, ball, lipschitz, "Gauss-Input", /*published=*/true);
}

absl::StatusOr<double> IdentityLipschitz(int64_t dimension, double p) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("dimension", dimension, 1, int64_t{1} << 40));
  PM_RETURN_IF_ERROR(CheckNorm(p));
  if (p <= 2 || dimension == 1) return 1.0;
  return std::pow(static_cast<double>(dimension), .5 - 1 / p) * kRoundedUp;
}

}  // namespace privatemail::client
