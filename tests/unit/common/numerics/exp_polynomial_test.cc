#include "common/numerics/exp_polynomial.h"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_dec_float.hpp>

namespace privatemail {
namespace {

using Precise = boost::multiprecision::cpp_dec_float_50;

Precise RelativeError(const ExpPolynomial& p, double rate, double t) {
  const Precise x = t;
  const Precise value = p.coefficients[0] + x * (p.coefficients[1] + x * p.coefficients[2]);
  return abs(value * exp(-Precise(rate) * x) - 1);
}

double LargestOnGrid(const ExpPolynomial& p, double rate, double radius) {
  constexpr int kSteps = 400;
  Precise largest = 0;
  for (int i = -kSteps; i <= kSteps; ++i) {
    largest = std::max(largest, RelativeError(p, rate, i == kSteps ? radius : radius * i / kSteps));
  }
  return static_cast<double>(largest);
}

TEST(ExpPolynomial, ErrorBoundHoldsAndIsTight) {
  for (int degree = 0; degree <= 2; ++degree) {
    for (const double range : {1e-14, 1e-9, 1e-6, 1e-4, 1. / 36, .04, .3, 1., 2.}) {
      for (const double radius : {1e-20, 1e-3, 1., 7., 1e6}) {
        const double rate = range / radius;
        if (rate * radius > kMaxExpRange) continue;
        const ExpPolynomial p = FitExp(degree, rate, radius);
        const double seen = LargestOnGrid(p, rate, radius);
        EXPECT_LE(seen, p.relative_error) << degree << " " << range << " " << radius;
        // No looser than rounding and the grid make it: coefficients are doubles.
        EXPECT_GE(seen, .999 * p.relative_error - 4e-16) << degree << " " << range << " " << radius;
      }
    }
  }
}

TEST(ExpPolynomial, ZeroRadiusGivesConstantOne) {
  for (int degree = 0; degree <= 2; ++degree) {
    const ExpPolynomial p = FitExp(degree, 3, 0);
    EXPECT_EQ(p(0), 1);
    EXPECT_LE(p.relative_error, 2e-16);
  }
}

}  // namespace
}  // namespace privatemail
