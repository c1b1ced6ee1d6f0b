// Rounding in double precision, paid for. Not installed: no number of an interface depends on it.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_ROUNDING_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_ROUNDING_H_

namespace privatemail {

// What one rounding to the nearest takes away at most, as a part of what is rounded.
inline constexpr double kUnitRoundoff = 0x1p-53;

// The same of a rounding to float.
inline constexpr double kFloatRoundoff = 0x1p-24;

// A computed number times this is never below the exact one, where at most 17 roundings lie between
// them, the one of this product included: (1 + 18 u)(1 - u)^17 > 1. Above it by 4 parts in 10^15.
inline constexpr double kRoundedUp = 1 + 18 * kUnitRoundoff;

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ROUNDING_H_
