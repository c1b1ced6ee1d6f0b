#include "client/privacy/accounting/gaussian_tradeoff.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/guarantee_fields.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

constexpr long double kSurplus = 1e-9L;  // covers the rounding of the evaluation
constexpr long double kLnSqrtTwoPi = .91893853320467274178032973640561763986L;

absl::Status CheckMu(double mu) {
  if (!(mu >= 1e-6) || !(mu <= 1e6)) {
    return FieldError("gaussian_mu", "between 1e-6 and 1e6", absl::StrCat(mu));
  }
  return absl::OkStatus();
}

// Upper tail of the standard normal over its density at x.
long double MillsRatio(long double x) {
  // Beyond 100 the tail underflows long before the ratio; the asymptotic series
  // 1/x (1 - 1/x^2 + 3/x^4 - ...) is exact there.
  if (x > 100) {
    const long double r = 1 / (x * x);
    return (1 - r * (1 - r * (3 - r * (15 - 105 * r)))) / x;
  }
  return std::sqrt(std::numbers::pi_v<long double> / 2) * std::exp(x * x / 2) *
         std::erfc(x / std::numbers::sqrt2_v<long double>);
}

// -R'(x) = 1 - x R(x), R the Mills ratio.
long double MillsSlope(long double x) {
  if (x > 100) {
    const long double r = 1 / (x * x);
    return r * (1 - r * (3 - r * (15 - 105 * r)));
  }
  return 1 - x * MillsRatio(x);
}

// R(x) - R(x + step). The two cancel over a small step; there it is the integral of the slope by
// two-point Gauss quadrature, whose relative error is below step^4.
long double MillsDrop(long double x, long double step) {
  if (step > 1e-3L) return MillsRatio(x) - MillsRatio(x + step);
  const long double offset = step / 2 / std::numbers::sqrt3_v<long double>;
  const long double middle = x + step / 2;
  return step / 2 * (MillsSlope(middle - offset) + MillsSlope(middle + offset));
}

// Whether the normal tail beyond x exceeds 1 / (1 + e^epsilon). Without cancellation: near one half
// it compares differences from one half, erf with tanh, and far from it logarithms.
bool IsTailAboveKink(long double x, long double epsilon) {
  if (epsilon < 1) {
    return std::erf(x / std::numbers::sqrt2_v<long double>) < std::tanh(epsilon / 2);
  }
  return std::log(MillsRatio(x)) - x * x / 2 - kLnSqrtTwoPi >
         -epsilon - std::log1p(std::exp(-epsilon));
}

}  // namespace

// With a = mu/2 - epsilon/mu and b = a - mu the densities satisfy e^epsilon phi(b) = phi(a), so
// delta = phi(a) (R(-a) - R(-b)), R the Mills ratio: no exponential of epsilon, so no overflow at
// epsilon = 800, and no cancellation but in R over a step of mu (MillsDrop).
long double LnGaussianDelta(long double epsilon, long double mu) {
  const long double a = mu / 2 - epsilon / mu;
  if (a > 100) return 0;  // delta is 1 to 10^-2000
  const long double difference = MillsDrop(-a, mu);
  if (!(difference > 0)) return -std::numeric_limits<long double>::infinity();
  return -a * a / 2 - kLnSqrtTwoPi + std::log(difference);
}

absl::StatusOr<double> GaussianEpsilon(double mu, double delta) {
  PM_RETURN_IF_ERROR(CheckMu(mu));
  PM_RETURN_IF_ERROR(CheckDelta(delta));
  const long double target = std::log(static_cast<long double>(delta)) - kSurplus;
  if (LnGaussianDelta(0, mu) <= target) return 0.0;
  long double low = 0;
  long double high = mu;
  while (LnGaussianDelta(high, mu) > target) high *= 2;
  for (int i = 0; i < 100 && high - low > 1e-17L * high; ++i) {
    const long double middle = (low + high) / 2;
    (LnGaussianDelta(middle, mu) > target ? low : high) = middle;
  }
  return static_cast<double>(high * (1 + 1e-15L));
}

absl::StatusOr<double> GaussianMuOfPureDp(double epsilon) {
  PM_RETURN_IF_ERROR(CheckEpsilon(epsilon));
  long double low = 0;
  long double high = 2 * std::sqrt(static_cast<long double>(epsilon)) + 2;
  for (int i = 0; i < 120 && high - low > 1e-18L * high; ++i) {
    const long double middle = (low + high) / 2;
    (IsTailAboveKink(middle, epsilon) ? low : high) = middle;
  }
  return static_cast<double>(2 * high * (1 + 1e-13L));
}

}  // namespace privatemail::client
