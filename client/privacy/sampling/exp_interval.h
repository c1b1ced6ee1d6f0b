// Rigorous integer bounds of the exponential function, to any precision. Not installed.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_EXP_INTERVAL_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_EXP_INTERVAL_H_

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>

namespace privatemail::client {

using BigInt = boost::multiprecision::cpp_int;

// The interval [low 2^-bits, high 2^-bits], for a precision known from context.
struct FixedInterval {
  BigInt low;
  BigInt high;
};

namespace exp_interval_internal {

inline BigInt DivideUp(const BigInt& a, const BigInt& b) { return (a + b - 1) / b; }

inline BigInt ShiftRightUp(const BigInt& a, unsigned bits) {
  BigInt shifted = a >> bits;
  if ((shifted << bits) != a) ++shifted;
  return shifted;
}

// exp(-y) for y in an interval within [0, 1/2].
inline FixedInterval ExpOfMinusSmall(const FixedInterval& y, unsigned bits) {
  FixedInterval term{BigInt(1) << bits, BigInt(1) << bits};
  FixedInterval sum = term;
  for (unsigned k = 1; term.high > 1; ++k) {
    const BigInt divisor = BigInt(k) << bits;
    term = {term.low * y.low / divisor, DivideUp(term.high * y.high, divisor)};
    if (k % 2 == 1) {
      sum = {sum.low - term.high, sum.high - term.low};
    } else {
      sum = {sum.low + term.low, sum.high + term.high};
    }
  }
  return {sum.low - term.high, sum.high + term.high};
}

}  // namespace exp_interval_internal

// An interval that contains exp(-x rank / steps). Proven. x: finite, not negative, taken as an
// exact rational; rank >= 0; steps >= 1; bits: 1 to 2^20. Integers only; every step rounds
// outwards.
//
// Proof. y = x rank / steps is halved h times until it is at most 1/2. The terms y^k / k! of
// exp(-y) then fall and alternate in sign, so that a partial sum is off by at most the last term
// taken. Squaring h times undoes the halving.
inline FixedInterval ExpOfMinus(double x, int64_t rank, int64_t steps, unsigned bits) {
  using namespace exp_interval_internal;
  const boost::multiprecision::cpp_rational exponent =
      boost::multiprecision::cpp_rational(x) * rank / steps;  // exact
  const BigInt scaled = numerator(exponent) << bits;
  BigInt halved = denominator(exponent);
  unsigned halvings = 0;
  for (; 2 * numerator(exponent) > halved; halved <<= 1) ++halvings;
  FixedInterval result = ExpOfMinusSmall({scaled / halved, DivideUp(scaled, halved)}, bits);
  for (unsigned h = 0; h < halvings; ++h) {
    result = {(result.low * result.low) >> bits, ShiftRightUp(result.high * result.high, bits)};
  }
  return result;
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SAMPLING_EXP_INTERVAL_H_
