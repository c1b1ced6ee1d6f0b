// Rounding up in double precision. Not installed.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ROUNDING_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ROUNDING_H_

#include <algorithm>
#include <cmath>
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

// At least the exact number, not negative, of which `value` is computed with at most 17 +
// more_roundings roundings. The last term covers subnormal results, which lose up to half a step.
inline double RoundUp(double value, double more_roundings = 0) {
  return value * (kRoundedUp + more_roundings * kUnitRoundoff) +
         4 * std::numeric_limits<double>::denorm_min();
}

// The smallest double that is not below whole * factor; whole: an integer.
inline double ProductUp(double whole, double factor) {
  const double product = whole * factor;
  const bool rounded_down = std::fma(whole, factor, -product) > 0;
  return rounded_down ? std::nextafter(product, std::numeric_limits<double>::infinity()) : product;
}

// The smallest double that is not below the sum of two that are not negative.
inline double SumUp(double one, double other) {
  const double sum = one + other;
  // sum - larger is exact.
  const bool rounded_down = std::min(one, other) > sum - std::max(one, other);
  return rounded_down ? std::nextafter(sum, std::numeric_limits<double>::infinity()) : sum;
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ROUNDING_H_
