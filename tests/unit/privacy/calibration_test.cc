#include "client/privacy/calibration.h"

#include <gtest/gtest.h>

#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>

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
