#include "client/privacy/mechanisms/calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "tests/testing/matchers.h"
#include "tests/unit/client/privacy/hundred_digits.h"

namespace privatemail::client {
namespace {

TEST(AnalyticGaussian, LeavesNoMoreThanDeltaInAHundredDigits) {
  for (const double epsilon :
       {1e-9, 1.4168586295305273e-9, 1e-6, 1e-3, .1, 1.0, 8.0, 60.0, 1e3, 1e6}) {
    for (const double delta : {.5, 1e-2, 1e-5, 1e-12, 1e-100, 1.1788867600492297e-280, 1e-300}) {
      ASSERT_OK_AND_ASSIGN(const double stddev, AnalyticGaussianStddev(epsilon, delta));
      EXPECT_LE(DeltaOf(epsilon, 1 / Real(stddev)), Real(delta)) << epsilon << " " << delta;
      EXPECT_GT(DeltaOf(epsilon, 1 / (Real(stddev) * (1 - 1e-7))), Real(delta))
          << epsilon << " " << delta;
    }
  }
}

// The same definition in quadruple precision: 34 digits, exponents to 10^4932. Its terms cancel at
// small epsilon: how much of the first is left over says how many of the digits are.
using Quad = boost::multiprecision::cpp_bin_float_quad;

Quad Tail(const Quad& x) { return boost::math::erfc(Quad(x / sqrt(Quad(2)))) / 2; }

struct QuadDelta {
  Quad delta;
  Quad left_over;  // of 1
};

QuadDelta DeltaInQuad(double epsilon, const Quad& stddev) {
  const Quad e = epsilon;
  const Quad first = Tail(e * stddev - 1 / (2 * stddev));
  const Quad delta = first - exp(e) * Tail(e * stddev + 1 / (2 * stddev));
  return {delta, delta / first};
}

// epsilon 1e-9 .. 1e3 and delta 1e-300 .. .5, both uniform in logarithm; a sensitivity scales the
// deviation and is drawn, too, so that the product's rounding is covered.
TEST(AnalyticGaussianProperty, HoldsAndIsTightOverAHundredThousandParameters) {
  std::mt19937_64 bits(20180516);
  std::uniform_real_distribution<double> log_epsilon(std::log(1e-9), std::log(1e3));
  std::uniform_real_distribution<double> log_delta(std::log(1e-300), std::log(.5));
  std::uniform_real_distribution<double> log_sensitivity(-20, 20);
  int too_small = 0;
  int too_large = 0;
  Quad least_left_over = 1;
  Quad least_surplus = 1;  // of delta asked over delta reached
  for (int trial = 0; trial < 100000; ++trial) {
    const double epsilon = std::exp(log_epsilon(bits));
    const double delta = std::exp(log_delta(bits));
    const double sensitivity = std::exp(log_sensitivity(bits));
    const double stddev = *AnalyticGaussianStddev(epsilon, delta) * sensitivity;
    const Quad per_unit = Quad(stddev) / sensitivity;
    const QuadDelta reached = DeltaInQuad(epsilon, per_unit);
    too_small += !(reached.delta <= delta);
    too_large += !(DeltaInQuad(epsilon, per_unit * (1 - Quad(1e-6))).delta > delta);
    least_left_over = std::min(least_left_over, reached.left_over);
    least_surplus = std::min(least_surplus, Quad(delta / reached.delta - 1));
  }
  EXPECT_EQ(too_small, 0);
  EXPECT_EQ(too_large, 0);
  // The check's own error, below 10^-34 x^2 / left_over for tails at x < 100, is far smaller than
  // what it has to tell apart.
  EXPECT_GT(least_left_over, Quad(1e-15));
  EXPECT_GT(least_surplus, Quad(1e-12));
  RecordProperty("least_left_over", least_left_over.str(3));
  RecordProperty("least_surplus", least_surplus.str(3));
}

TEST(AnalyticGaussian, NeedsLessThanTheClassicalFormulaWhereThatIsProven) {
  for (const double epsilon : {.01, .1, .9}) {
    EXPECT_LT(*AnalyticGaussianStddev(epsilon, 1e-5), *PublishedGaussianStddev(epsilon, 1e-5));
  }
}

TEST(LaplaceScale, IsNeverBelowTheQuotientAndHardlyAbove) {
  std::mt19937_64 bits(2006);
  std::uniform_real_distribution<double> log_value(-300, 300);
  std::uniform_real_distribution<double> log_epsilon(std::log(1.01e-9), std::log(.99e6));
  for (int trial = 0; trial < 100000; ++trial) {
    const double epsilon = std::exp(log_epsilon(bits));
    const double sensitivity = std::exp(log_value(bits));
    const Quad quotient = Quad(sensitivity) / epsilon;
    ASSERT_OK_AND_ASSIGN(const double scale, LaplaceScale(epsilon, sensitivity));
    ASSERT_GE(scale, quotient) << epsilon << " " << sensitivity;
    ASSERT_LE(scale, quotient * (1 + Quad(4e-15))) << epsilon << " " << sensitivity;
  }
}

TEST(LaplaceScale, BadParametersAndAScaleThatIsNoNormalNumberAreNamed) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(LaplaceScale(nan, 1), FailsWith(kInvalid, "epsilon must be finite and positive"));
  EXPECT_THAT(LaplaceScale(0, 1), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(LaplaceScale(1, nan), FailsWith(kInvalid, "sensitivity must be finite and positive"));
  EXPECT_THAT(LaplaceScale(1, INFINITY), FailsWith(kInvalid, "sensitivity"));
  EXPECT_THAT(LaplaceScale(1e-10, 1), FailsWith(kInvalid, "epsilon must be between 1e-9 and"));
  EXPECT_THAT(LaplaceScale(1e7, 1), FailsWith(kInvalid, "epsilon must be between 1e-9 and 1e6"));
  EXPECT_THAT(LaplaceScale(1e-9, 1e300), FailsWith(kInvalid, "scale must be a normal number"));
  EXPECT_THAT(LaplaceScale(1e6, 1e-303), FailsWith(kInvalid, "scale must be a normal number"));
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
}  // namespace privatemail::client
