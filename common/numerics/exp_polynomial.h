// Minimax polynomials of low degree for the exponential, with a proven error bound.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_EXP_POLYNOMIAL_H_
#define PRIVATEMAIL_COMMON_NUMERICS_EXP_POLYNOMIAL_H_

#include <array>

namespace privatemail {

// p(t) = coefficients[0] + coefficients[1] t + coefficients[2] t^2, approximating exp(rate t).
struct ExpPolynomial {
  int degree = 0;
  std::array<double, 3> coefficients = {};
  // |p(t) - exp(rate t)| <= relative_error exp(rate t) for every |t| <= radius.
  double relative_error = 0;

  double operator()(double t) const {
    return coefficients[0] + t * (coefficients[1] + t * coefficients[2]);
  }
};

// Largest rate * radius: beyond it, no polynomial of degree 2 has an error below 10 %.
inline constexpr double kMaxExpRange = 2;

// The polynomial of `degree` (0, 1 or 2) with the smallest relative error on [-radius, radius], by
// the Remez exchange. Requires rate >= 0, radius >= 0 and rate * radius <= kMaxExpRange.
//
// Proof of relative_error for any result of the exchange: let e(t) = p(t) exp(-rate t) - 1.
// - e'(t) = (p'(t) - rate p(t)) exp(-rate t) vanishes only at roots of the quadratic p' - rate p.
// - So |e| is largest at an end of the interval or at one of at most two roots, where the stored
//   coefficients are evaluated.
// - Rounding with 64-bit mantissas: a root has a residue of e' of at most 2^-57, which moves e by
//   less than 2^-55; e is computed within 2^-58; 2^-53 is added.
ExpPolynomial FitExp(int degree, double rate, double radius);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_EXP_POLYNOMIAL_H_
