#include "client/privacy/calibration.h"

#include <gtest/gtest.h>

#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

using Real = boost::multiprecision::cpp_bin_float_100;

Real Phi(const Real& x) { return boost::math::erfc(Real(-x / sqrt(Real(2)))) / 2; }

// The definition, in a hundred digits, with its two terms as they stand.
Real DeltaOf(double epsilon, double stddev) {
  const Real s = stddev;
  const Real e = epsilon;
  return Phi(1 / (2 * s) - e * s) - exp(e) * Phi(-1 / (2 * s) - e * s);
}

TEST(AnalyticGaussian, LeavesNoMoreThanDeltaInAHundredDigits) {
  for (const double epsilon : {1e-6, 1e-3, .1, 1.0, 8.0, 60.0, 1e3}) {
    for (const double delta : {.5, 1e-2, 1e-5, 1e-12, 1e-100, 1e-300}) {
      ASSERT_OK_AND_ASSIGN(const double stddev, AnalyticGaussianStddev(epsilon, delta));
      EXPECT_LE(DeltaOf(epsilon, stddev), Real(delta)) << epsilon << " " << delta;
      EXPECT_GT(DeltaOf(epsilon, stddev * (1 - 1e-7)), Real(delta)) << epsilon << " " << delta;
    }
  }
}

// The same definition in quadruple precision, 34 digits: neither term exceeds 1 and their difference
// is at least 10^-12, so 22 digits of it survive.
using Quad = boost::multiprecision::cpp_bin_float_quad;

Quad Tail(const Quad& x) { return boost::math::erfc(Quad(x / sqrt(Quad(2)))) / 2; }

Quad DeltaInQuad(double epsilon, const Quad& stddev) {
  const Quad e = epsilon;
  return Tail(e * stddev - 1 / (2 * stddev)) - exp(e) * Tail(e * stddev + 1 / (2 * stddev));
}

// epsilon 1e-3 .. 50 and delta 1e-12 .. .5, both uniform in logarithm; a sensitivity scales the
// deviation and is drawn, too, so that the product's rounding is covered.
TEST(AnalyticGaussianProperty, HoldsAndIsTightOverAHundredThousandParameters) {
  std::mt19937_64 bits(20180516);
  std::uniform_real_distribution<double> log_epsilon(std::log(1e-3), std::log(50.));
  std::uniform_real_distribution<double> log_delta(std::log(1e-12), std::log(.5));
  std::uniform_real_distribution<double> log_sensitivity(-20, 20);
  int too_small = 0;
  int too_large = 0;
  for (int trial = 0; trial < 100000; ++trial) {
    const double epsilon = std::exp(log_epsilon(bits));
    const double delta = std::exp(log_delta(bits));
    const double sensitivity = std::exp(log_sensitivity(bits));
    const double stddev = *AnalyticGaussianStddev(epsilon, delta) * sensitivity;
    const Quad per_unit = Quad(stddev) / sensitivity;
    too_small += DeltaInQuad(epsilon, per_unit) > delta;
    too_large += DeltaInQuad(epsilon, per_unit * (1 - Quad(1e-6))) <= delta;
  }
  EXPECT_EQ(too_small, 0);
  EXPECT_EQ(too_large, 0);
}

TEST(AnalyticGaussian, NeedsLessThanTheClassicalFormulaWhereThatIsProven) {
  for (const double epsilon : {.01, .1, .9}) {
    EXPECT_LT(*AnalyticGaussianStddev(epsilon, 1e-5), *PublishedGaussianStddev(epsilon, 1e-5));
  }
}

TEST(Calibration, BadParametersAreNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto calibrate : {AnalyticGaussianStddev, PublishedGaussianStddev}) {
    EXPECT_THAT(calibrate(nan, .1), FailsWith(absl::StatusCode::kInvalidArgument,
                                              "epsilon must be finite and positive, but is nan"));
    EXPECT_THAT(calibrate(0, .1), FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
    EXPECT_THAT(calibrate(-1, .1), FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
    EXPECT_THAT(calibrate(INFINITY, .1), FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
    EXPECT_THAT(calibrate(1e7, .1), FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
    EXPECT_THAT(calibrate(1, nan), FailsWith(absl::StatusCode::kInvalidArgument, "delta"));
    EXPECT_THAT(calibrate(1, 0), FailsWith(absl::StatusCode::kInvalidArgument, "delta"));
    EXPECT_THAT(calibrate(1, 1), FailsWith(absl::StatusCode::kInvalidArgument, "delta"));
    EXPECT_THAT(calibrate(1, 1e-305), FailsWith(absl::StatusCode::kInvalidArgument, "delta"));
  }
}

}  // namespace
}  // namespace privatemail
