#include "client/privacy/mechanisms/calibration.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/gaussian_tradeoff.h"
#include "client/privacy/accounting/guarantee_fields.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/rounding.h"

namespace privatemail::client {
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

absl::StatusOr<double> LaplaceScale(double epsilon, double sensitivity) {
  PM_RETURN_IF_ERROR(CheckEpsilon(epsilon));
  PM_RETURN_IF_ERROR(CheckFinitePositive("sensitivity", sensitivity));
  const double scale = sensitivity / epsilon * kRoundedUp;
  if (std::isnormal(scale)) return scale;
  return absl::InvalidArgumentError(
      absl::StrCat("the noise's scale must be a normal number, but sensitivity ", sensitivity,
                   " and epsilon ", epsilon, " make it ", scale));
}

absl::StatusOr<double> IdentityLipschitz(int64_t dimension, double p) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("dimension", dimension, 1, int64_t{1} << 40));
  if (!(p >= 1)) return FieldError("norm", "at least 1", absl::StrCat(p));
  if (p <= 2 || dimension == 1) return 1.0;
  return std::pow(static_cast<double>(dimension), .5 - 1 / p) * kRoundedUp;
}

}  // namespace privatemail::client
