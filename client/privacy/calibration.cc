#include "client/privacy/calibration.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {
namespace {

absl::Status CheckPrivacyParameters(double epsilon, double delta) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", epsilon));
  PM_RETURN_IF_ERROR(CheckOpenUnitInterval("delta", delta));
  if (!(epsilon >= 1e-9) || !(epsilon <= 1e6)) {
    return absl::InvalidArgumentError(
        absl::StrCat("epsilon must be between 1e-9 and 1e6, but is ", epsilon));
  }
  if (!(delta >= 1e-300)) {
    return absl::InvalidArgumentError(
        absl::StrCat("delta must be at least 1e-300, but is ", delta));
  }
  return absl::OkStatus();
}

// Upper tail of the standard normal over its density at x.
long double MillsRatio(long double x) {
  // Past 100 the tail underflows long before the ratio does; 1/x (1 - 1/x^2 + 3/x^4 - ...) is exact
  // there.
  if (x > 100) {
    const long double r = 1 / (x * x);
    return (1 - r * (1 - r * (3 - r * (15 - 105 * r)))) / x;
  }
  return std::sqrt(std::numbers::pi_v<long double> / 2) * std::exp(x * x / 2) *
         std::erfc(x / std::numbers::sqrt2_v<long double>);
}

// ln of the delta that noise s leaves at epsilon. With a = 1/2s - epsilon s and b = a - 1/s the
// densities satisfy e^epsilon phi(b) = phi(a), so delta = phi(a) (R(-a) - R(-b)), R the Mills
// ratio: no exponential of epsilon, nothing that overflows at epsilon = 800, and the only
// cancellation is that of R over a step of 1/s, at most 9 of the 19 digits over the accepted range.
long double LnDelta(long double epsilon, long double s) {
  const long double a = 1 / (2 * s) - epsilon * s;
  if (a > 100) return 0;  // delta is 1 for every purpose
  const long double difference = MillsRatio(-a) - MillsRatio(-a + 1 / s);
  if (!(difference > 0)) return -std::numeric_limits<long double>::infinity();
  return -a * a / 2 - std::log(2 * std::numbers::pi_v<long double>) / 2 + std::log(difference);
}

}  // namespace

absl::StatusOr<double> AnalyticGaussianStddev(double epsilon, double delta) {
  PM_RETURN_IF_ERROR(CheckPrivacyParameters(epsilon, delta));
  const long double target = std::log(static_cast<long double>(delta));
  long double low = 1;
  while (LnDelta(epsilon, low) <= target) low /= 2;
  long double high = 2 * low;
  while (LnDelta(epsilon, high) > target) high *= 2;
  for (int i = 0; i < 80 && high - low > 1e-15L * high; ++i) {
    const long double middle = (low + high) / 2;
    (LnDelta(epsilon, middle) > target ? low : high) = middle;
  }
  return static_cast<double>(high * (1 + 1e-9L));
}

absl::StatusOr<double> PublishedGaussianStddev(double epsilon, double delta) {
  PM_RETURN_IF_ERROR(CheckPrivacyParameters(epsilon, delta));
  return std::sqrt(2 * std::log(1.25 / delta)) / epsilon;
}

}  // namespace privatemail
