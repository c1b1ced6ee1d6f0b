// Rounding up in double precision. Not installed.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ROUNDING_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ROUNDING_H_

#include <limits>

namespace privatemail::client {

// Largest relative error of one rounding to nearest, to double and to float.
inline constexpr double kUnitRoundoff = 0x1p-53;
inline constexpr double kFloatRoundoff = 0x1p-24;

// A computed number times this is at least the exact one, if at most 17 roundings separate them,
// this product's included: (1 + 18 u)(1 - u)^17 > 1. Above it by at most 4 parts in 10^15.
inline constexpr double kRoundedUp = 1 + 18 * kUnitRoundoff;

// Largest absolute error of a rounding to a subnormal float.
inline constexpr double kSmallestFloatRounding = 0x1p-150;

// At least the exact number, not negative, of which `value` is computed with at most 17 roundings.
// The last term covers subnormal results, which lose up to half a step.
inline double RoundUp(double value) {
  return value * kRoundedUp + 4 * std::numeric_limits<double>::denorm_min();
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ROUNDING_H_
