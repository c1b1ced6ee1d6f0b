// Scalar arithmetic modulo q, for tables and for the portable path.
#ifndef PRIVATEMAIL_COMMON_LATTICE_MODULAR_H_
#define PRIVATEMAIL_COMMON_LATTICE_MODULAR_H_

#include <array>
#include <cstdint>

#include "common/lattice/ring.h"

namespace privatemail::lattice {

// -1 if `value` is negative, otherwise 0, without a branch.
constexpr int64_t SignMask(int64_t value) { return value >> 63; }

// Centres a value of at most 3 q / 2 in absolute value, without a branch.
constexpr int64_t CentreOnce(int64_t value) {
  constexpr int64_t kHalf = (kModulus - 1) / 2;
  value -= kModulus & SignMask(kHalf - value);
  return value + (kModulus & SignMask(value + kHalf));
}

// A value congruent to `value`, in (-2^34, 2^41 + 2^34), for |value| < 2^62: since q is
// 2^41 - 2^12 + 1, 2^41 is congruent to 2^12 - 1.
constexpr int64_t Fold(int64_t value) {
  constexpr int64_t kMask = (int64_t{1} << kModulusBits) - 1;
  const int64_t high = value >> kModulusBits;
  return (value & kMask) + (high << 12) - high;
}

// Centre (ring.h), inline.
constexpr int64_t CentreInline(int64_t value) { return CentreOnce(Fold(value)); }

__extension__ using Wide = __int128;

// Fold for |value| < 2^89, in (-2^30, 2^41 + 2^30).
constexpr int64_t FoldWide(Wide value) {
  constexpr int64_t kMask = (int64_t{1} << kModulusBits) - 1;
  const auto high = static_cast<int64_t>(value >> kModulusBits);
  return Fold((static_cast<int64_t>(value) & kMask) + (high << 12) - high);
}

// A value congruent to x y, in (-2^30, 2^41 + 2^30), for |x y| < 2^89.
constexpr int64_t Multiply(int64_t x, int64_t y) { return FoldWide(Wide{x} * y); }

// round(y 2^64 / q), for a centred y.
constexpr int64_t ShareOf(int64_t y) {
  return static_cast<int64_t>(((Wide{y} << 65) / kModulus + 1) >> 1);
}

// A factor of many products, with its share of the modulus.
struct Factor {
  int64_t value;  // centred
  int64_t share;  // ShareOf(value)
};

// A value congruent to x y, in [-2^24, q + 2^24], for |x| < 2^48. modulus: q from memory, because
// compilers replace a product with the constant by five instructions.
constexpr int64_t MultiplyBy(int64_t x, Factor y, int64_t modulus) {
  const auto quotient = static_cast<int64_t>((Wide{x} * y.share) >> 64);
  return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y.value) -
                              static_cast<uint64_t>(quotient) * static_cast<uint64_t>(modulus));
}

// Centred.
constexpr int64_t PowerModulo(int64_t base, int64_t exponent) {
  int64_t power = 1;
  for (; exponent > 0; exponent /= 2, base = Multiply(base, base)) {
    if (exponent % 2 != 0) power = Multiply(power, base);
  }
  return CentreInline(power);
}

// The kLogDegree bits of each number in reverse order.
inline constexpr std::array<uint16_t, kDegree> kReversedBits = [] {
  std::array<uint16_t, kDegree> reversed = {};
  for (int i = 1; i < kDegree; ++i) {
    reversed[i] = static_cast<uint16_t>(reversed[i / 2] / 2 + i % 2 * kDegree / 2);
  }
  return reversed;
}();
constexpr int ReverseBits(int value) { return kReversedBits[value]; }

// Powers of psi for the transforms: forward[i] = psi^ReverseBits(i), inverse[i] its inverse.
struct Roots {
  std::array<Factor, kDegree> forward, inverse;
  // The last step of the inverse transform: 1 / N, and inverse[1] / N.
  Factor scale, scaled_root;
  int64_t modulus;
};
const Roots& GetRoots();

// Transform without its last step: results are less than 2^45 in absolute value.
void TransformUnreduced(int64_t* values);

}  // namespace privatemail::lattice

#endif  // PRIVATEMAIL_COMMON_LATTICE_MODULAR_H_
