// Rounding up in double precision. Not installed.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_ROUNDING_H_
#define PRIVATEMAIL_COMMON_NUMERICS_ROUNDING_H_

#include <limits>

namespace privatemail {

// Largest relative error of one rounding to nearest.
inline constexpr double kUnitRoundoff = 0x1p-53;

// A computed number times this is at least the exact one, if at most 17 roundings separate them,
// this product's included: (1 + 18 u)(1 - u)^17 > 1. Above it by at most 4 parts in 10^15.
inline constexpr double kRoundedUp = 1 + 18 * kUnitRoundoff;

// At least the exact number, not negative, of which `value` is computed with at most 17 roundings.
// The last term covers subnormal results, which lose up to half a step.
inline double RoundUp(double value) {
  return value * kRoundedUp + 4 * std::numeric_limits<double>::denorm_min();
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_ROUNDING_H_
