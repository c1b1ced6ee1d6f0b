// Scalar arithmetic modulo q, for tables and for the portable path.
#ifndef PRIVATEMAIL_COMMON_LATTICE_MODULAR_H_
#define PRIVATEMAIL_COMMON_LATTICE_MODULAR_H_

#include <array>
#include <cstdint>

#include "common/lattice/ring.h"

namespace privatemail::lattice {

// x y modulo q, for 0 <= x, y < q. For tables; too slow for transforms.
constexpr int64_t MultiplyModulo(int64_t x, int64_t y) {
  int64_t product = 0;
  for (int bit = kModulusBits - 1; bit >= 0; --bit) {
    product = 2 * product % kModulus;
    if ((y >> bit & 1) != 0) product = (product + x) % kModulus;
  }
  return product;
}

constexpr int64_t PowerModulo(int64_t base, int64_t exponent) {
  int64_t power = 1;
  for (; exponent > 0; exponent /= 2, base = MultiplyModulo(base, base)) {
    if (exponent % 2 != 0) power = MultiplyModulo(power, base);
  }
  return power;
}

// -1 if `value` is negative, otherwise 0, without a branch.
constexpr int64_t SignMask(int64_t value) { return value >> 63; }

// Centres a value of at most 3 q / 2 in absolute value, without a branch.
constexpr int64_t CentreOnce(int64_t value) {
  constexpr int64_t kHalf = (kModulus - 1) / 2;
  value -= kModulus & SignMask(kHalf - value);
  return value + (kModulus & SignMask(value + kHalf));
}

// x y - quotient q, computed modulo 2^64; exact if it is small, as for a quotient close to x y / q.
inline int64_t SubtractMultiple(int64_t x, int64_t y, int64_t quotient) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y) -
                              static_cast<uint64_t>(quotient) * static_cast<uint64_t>(kModulus));
}

// A value congruent to x y, less than 2 q in absolute value, for |x| < 2^52 and |y| < 2^41. The
// quotient is an estimate in double; its error of at most 1 does not change the residue class.
inline int64_t Multiply(int64_t x, int64_t y) {
  constexpr double kInverse = 1.0 / static_cast<double>(kModulus);
  const double quotient = static_cast<double>(x) * (static_cast<double>(y) * kInverse);
  return SubtractMultiple(x, y, static_cast<int64_t>(quotient));
}

// Multiply by a constant whose share y / q is known.
inline int64_t MultiplyBy(int64_t x, int64_t y, double share) {
  return SubtractMultiple(x, y, static_cast<int64_t>(static_cast<double>(x) * share));
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

// Powers of psi for the transforms: roots[i] = psi^ReverseBits(i), centred, and its inverse.
struct Roots {
  std::array<int64_t, kDegree> forward, inverse;
  std::array<double, kDegree> forward_share, inverse_share;  // divided by q
  int64_t degree_inverse;                                    // 1 / N, centred
};
const Roots& GetRoots();

}  // namespace privatemail::lattice

#endif  // PRIVATEMAIL_COMMON_LATTICE_MODULAR_H_
