#include "client/privacy/sampling/exp_interval.h"

#include <cmath>

namespace privatemail::client {
namespace {

BigInt DivideUp(const BigInt& a, const BigInt& b) { return (a + b - 1) / b; }

BigInt ShiftRightUp(const BigInt& a, unsigned bits) {
  BigInt shifted = a >> bits;
  if ((shifted << bits) != a) ++shifted;
  return shifted;
}

// numerator / denominator, both not negative and the latter not 0.
struct Fraction {
  BigInt numerator;
  BigInt denominator;
};

Fraction Product(double x, int64_t rank, int64_t steps) {
  constexpr int kMantissaBits = 53;
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  Fraction f{BigInt(static_cast<int64_t>(std::ldexp(mantissa, kMantissaBits))) * rank,
             BigInt(steps)};
  exponent -= kMantissaBits;
  (exponent > 0 ? f.numerator : f.denominator) <<= static_cast<unsigned>(std::abs(exponent));
  return f;
}

// How often it is to be halved until it is at most 1/2.
unsigned Halvings(const Fraction& f) {
  unsigned halvings = 0;
  for (BigInt doubled = f.denominator; 2 * f.numerator > doubled; doubled <<= 1) ++halvings;
  return halvings;
}

// Of y in [0, 1/2], itself in an interval.
FixedInterval ExpOfMinusSmall(const FixedInterval& y, unsigned bits) {
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

}  // namespace

FixedInterval ExpOfMinus(double x, int64_t rank, int64_t steps, unsigned bits) {
  const Fraction exponent = Product(x, rank, steps);
  const unsigned halvings = Halvings(exponent);
  const BigInt scaled = exponent.numerator << bits;
  const BigInt halved = exponent.denominator << halvings;
  FixedInterval result = ExpOfMinusSmall({scaled / halved, DivideUp(scaled, halved)}, bits);
  for (unsigned h = 0; h < halvings; ++h) {
    result = {(result.low * result.low) >> bits, ShiftRightUp(result.high * result.high, bits)};
  }
  return result;
}

}  // namespace privatemail::client
