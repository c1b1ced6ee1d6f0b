// Rounding in double precision, paid for. Not installed: no number of an interface depends on it.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ROUNDING_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ROUNDING_H_

#include <algorithm>
#include <cmath>
#include <limits>

namespace privatemail::client {

// What one rounding to the nearest takes away at most, as a part of what is rounded.
inline constexpr double kUnitRoundoff = 0x1p-53;

// The same of a rounding to float.
inline constexpr double kFloatRoundoff = 0x1p-24;

// A computed number times this is never below the exact one, where at most 17 roundings lie between
// them, the one of this product included: (1 + 18 u)(1 - u)^17 > 1. Above it by 4 parts in 10^15.
inline constexpr double kRoundedUp = 1 + 18 * kUnitRoundoff;

// What a rounding to float takes away at most where floats are subnormal, and a part of the number
// says nothing.
inline constexpr double kSmallestFloatRounding = 0x1p-150;

// Never below the exact number, not negative, of which `value` is computed with at most 17
// roundings and so many more. The last term is for results below the smallest normal number, which
// lose up to half a step of the doubles there, whatever part of them that is.
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
  // What the sum has of the smaller is exact.
  const bool rounded_down = std::min(one, other) > sum - std::max(one, other);
  return rounded_down ? std::nextafter(sum, std::numeric_limits<double>::infinity()) : sum;
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ROUNDING_H_
