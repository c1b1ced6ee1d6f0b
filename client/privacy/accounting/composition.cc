#include "client/privacy/accounting/composition.h"

#include <cmath>

#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/rounding.h"

namespace privatemail::client {
namespace {

// Strong composition of `times` releases of the same epsilon, rounded up over ten roundings;
// tanh(epsilon / 2) is (e^epsilon - 1) / (e^epsilon + 1).
double StrongEpsilon(double each, double times, double delta_slack) {
  return RoundUp(each * std::sqrt(2 * times * -std::log(delta_slack)) +
                 times * (each * std::tanh(each / 2)));
}

}  // namespace

absl::StatusOr<EpsilonShare> EpsilonPerRelease(double epsilon, double delta, int64_t times) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", epsilon));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("times", times, 1, 10000));
  // 1 - 8u covers the rounding of the sum of several releases.
  const double plain =
      times == 1 ? epsilon : epsilon / static_cast<double>(times) * (1 - 8 * kUnitRoundoff);
  if (delta == 0) return EpsilonShare{plain, 0, kBasicComposition};
  PM_RETURN_IF_ERROR(CheckOpenUnitInterval("delta", delta));
  const auto k = static_cast<double>(times);
  double low = 0;
  double high = epsilon;
  for (int i = 0; i < 200 && high - low > 1e-15 * high; ++i) {
    const double middle = (low + high) / 2;
    (StrongEpsilon(middle, k, delta) <= epsilon ? low : high) = middle;
  }
  const double strong = low * (1 - 1e-14);
  if (strong > plain) return EpsilonShare{strong, delta, kStrongComposition};
  return EpsilonShare{plain, 0, kBasicComposition};
}

}  // namespace privatemail::client
