// Definition of Gaussian differential privacy in a hundred digits.
#ifndef PRIVATEMAIL_TESTS_UNIT_CLIENT_PRIVACY_HUNDRED_DIGITS_H_
#define PRIVATEMAIL_TESTS_UNIT_CLIENT_PRIVACY_HUNDRED_DIGITS_H_

#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>

namespace privatemail::client {

using Real = boost::multiprecision::cpp_bin_float_100;

inline Real Phi(const Real& x) { return boost::math::erfc(Real(-x / sqrt(Real(2)))) / 2; }

// The delta at epsilon of N(0, 1) against N(mu, 1).
inline Real DeltaOf(const Real& epsilon, const Real& mu) {
  return Phi(mu / 2 - epsilon / mu) - exp(epsilon) * Phi(-mu / 2 - epsilon / mu);
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_TESTS_UNIT_CLIENT_PRIVACY_HUNDRED_DIGITS_H_
