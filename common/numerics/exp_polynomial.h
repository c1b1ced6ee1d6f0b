// The exponential on a short interval as a polynomial of low degree, with its proven error.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_EXP_POLYNOMIAL_H_
#define PRIVATEMAIL_COMMON_NUMERICS_EXP_POLYNOMIAL_H_

#include <array>

namespace privatemail {

// p(t) = coefficients[0] + coefficients[1] t + coefficients[2] t^2 in place of exp(rate t).
struct ExpPolynomial {
  int degree = 0;
  std::array<double, 3> coefficients = {};
  // |p(t) - exp(rate t)| <= relative_error exp(rate t) for every |t| <= radius.
  double relative_error = 0;

  double operator()(double t) const {
    return coefficients[0] + t * (coefficients[1] + t * coefficients[2]);
  }
};

// The largest rate * radius that is taken: beyond it no polynomial of degree 2 is better than 10 %.
inline constexpr double kMaxExpRange = 2;

// The polynomial of `degree` (0, 1 or 2) whose relative error on [-radius, radius] is smallest, by
// Remez' exchange. Requires rate >= 0, radius >= 0 and rate * radius <= kMaxExpRange.
//
// Proof of the error, whatever the exchange arrived at. e(t) = p(t) exp(-rate t) - 1 is the
// relative error; e'(t) = (p'(t) - rate p(t)) exp(-rate t) vanishes only where the quadratic p' -
// rate p does, so |e| takes its maximum at an end of the interval or at one of at most two roots,
// and there the stored coefficients are looked at. Rounding: with 64-bit mantissas a root is found
// up to a residue of e' of 2^-57, which moves e by less than 2^-55, and e itself is computed within
// 2^-58; 2^-53 is added.
ExpPolynomial FitExp(int degree, double rate, double radius);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_EXP_POLYNOMIAL_H_
