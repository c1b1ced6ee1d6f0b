#include "client/privacy/mechanisms/calibration.h"

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "client/privacy/mechanisms/make_mechanism.h"
#include "tests/testing/matchers.h"
#include "tests/unit/client/privacy/hundred_digits.h"

namespace privatemail::client::calibration_test {
namespace {

// Drawn ones are uniform in logarithm.
TEST(AnalyticGaussian, MeetsDeltaInAHundredDigits) {
  std::vector<std::pair<double, double>> parameters;
  for (const double epsilon :
       {1e-9, 1.4168586295305273e-9, 1e-6, 1e-3, .1, 1.0, 8.0, 60.0, 1e3, 1e6}) {
    for (const double delta : {.5, 1e-2, 1e-5, 1e-12, 1e-100, 1.1788867600492297e-280, 1e-300}) {
      parameters.emplace_back(epsilon, delta);
    }
  }
  std::mt19937_64 bits(20180516);
  std::uniform_real_distribution<double> log_epsilon(std::log(1e-9), std::log(1e3));
  std::uniform_real_distribution<double> log_delta(std::log(1e-300), std::log(.5));
  for (int trial = 0; trial < 1000; ++trial) {
    const double epsilon = std::exp(log_epsilon(bits));
    parameters.emplace_back(epsilon, std::exp(log_delta(bits)));
  }
  for (const auto& [epsilon, delta] : parameters) {
    ASSERT_OK_AND_ASSIGN(const double stddev, AnalyticGaussianStddev(epsilon, delta));
    // Its product with a sensitivity may be rounded down.
    EXPECT_LE(DeltaOf(epsilon, 1 / (Real(stddev) * (1 - Real(0x1p-53)))), Real(delta))
        << epsilon << " " << delta;
    EXPECT_GT(DeltaOf(epsilon, 1 / (Real(stddev) * (1 - 1e-7))), Real(delta))
        << epsilon << " " << delta;
  }
}

// 34 digits, exponents to 10^4932.
using Quad = boost::multiprecision::cpp_bin_float_quad;

TEST(LaplaceScale, IsRoundedUp) {
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

TEST(LaplaceScale, BadParametersAreNamed) {
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
    EXPECT_THAT(calibrate(nan, .1), FailsWith(kInvalid, "epsilon must be finite and positive"));
    EXPECT_THAT(calibrate(0, .1), FailsWith(kInvalid, "epsilon"));
    EXPECT_THAT(calibrate(-1, .1), FailsWith(kInvalid, "epsilon"));
    EXPECT_THAT(calibrate(INFINITY, .1), FailsWith(kInvalid, "epsilon"));
    EXPECT_THAT(calibrate(1e7, .1), FailsWith(kInvalid, "epsilon"));
    EXPECT_THAT(calibrate(1, nan), FailsWith(kInvalid, "delta"));
    EXPECT_THAT(calibrate(1, 0), FailsWith(kInvalid, "delta"));
    EXPECT_THAT(calibrate(1, 1), FailsWith(kInvalid, "delta"));
    EXPECT_THAT(calibrate(1, 1e-305), FailsWith(kInvalid, "delta"));
  }
}

MechanismParameters InBall(MechanismKind kind, double epsilon, double radius, double norm) {
  MechanismParameters parameters{.kind = kind, .epsilon = epsilon, .radius = radius, .norm = norm};
  if (TraitsOf(kind).TakesDelta()) parameters.delta = 1e-5;
  return parameters;
}

TEST(InferencePrivacy, LapOutputIsRoundedUp) {
  MechanismParameters parameters = InBall(MechanismKind::kLapOutput, .7, .3, 2);
  parameters.lipschitz = 1.1;
  const double scale = Calibrate(parameters, 1)->stddev / M_SQRT2;
  EXPECT_GE(static_cast<long double>(scale) * (1 + 1e-15L), .3L * 1.1L / .7L);
  EXPECT_LE(scale, .3 * 1.1 / .7 * (1 + 1e-14));
}

// 64 coordinates of 1/8 are 1/8 apart in the largest of them and 1 in L2.
TEST(InferencePrivacy, GaussInputHidesTheBallOfItsNorm) {
  const auto stddev = [](double norm) {
    return Calibrate(InBall(MechanismKind::kGaussInput, 1, .5, norm), 64)->stddev;
  };
  EXPECT_NEAR(stddev(2) / (.5 * *AnalyticGaussianStddev(1, 1e-5)), 1, 1e-14);
  EXPECT_EQ(stddev(1), stddev(2));
  EXPECT_NEAR(stddev(INFINITY) / stddev(2), 8, 1e-12);
}

TEST(InferencePrivacy, MetricNamesTheNorm) {
  for (const auto& [norm, metric] :
       {std::pair(1., "l1"), {1.999996, "l1.999996"}, {2., "l2"}, {double{INFINITY}, "linf"}}) {
    const Guarantee guarantee =
        Calibrate(InBall(MechanismKind::kGaussInput, 1, .25, norm), 3)->guarantee;
    EXPECT_EQ(guarantee.metric, metric);
    EXPECT_EQ(guarantee.radius, .25);
    EXPECT_THAT(Validate(guarantee), IsOk());
  }
}

TEST(IdentityLipschitz, IsReachedAndNotExceeded) {
  std::mt19937 bits(3);
  std::normal_distribution<double> normal;
  for (const double p : {1.0, 1.5, 2.0, 3.0, 10.0}) {
    for (const int d : {1, 2, 7, 100}) {
      ASSERT_OK_AND_ASSIGN(const double constant, IdentityLipschitz(d, p));
      double largest = 0;
      for (int trial = 0; trial < 50; ++trial) {
        double squares = 0;
        double powers = 0;
        for (int i = 0; i < d; ++i) {
          // The first two trials are the extremes: all equal, and one alone.
          const double x = trial == 0 ? 1 : trial == 1 ? (i == 0) : std::abs(normal(bits));
          squares += x * x;
          powers += std::pow(x, p);
        }
        largest = std::max(largest, std::sqrt(squares) / std::pow(powers, 1 / p));
      }
      EXPECT_LE(largest, constant * (1 + 1e-14));
      EXPECT_GE(largest, constant * (1 - 1e-14));
    }
  }
}

TEST(IdentityLipschitz, IsRoundedUp) {
  for (const double p : {2.5, 3.0, 7.0, 10.0}) {
    for (int d = 2; d < 60; ++d) {
      EXPECT_GE(Real(*IdentityLipschitz(d, p)), pow(Real(d), Real(.5) - 1 / Real(p))) << d;
    }
  }
}

// mechanism_test.cc has the fields that are NaN, missing or unused.
TEST(InferencePrivacy, BadParametersAreNamed) {
  const auto refusal = [](double epsilon, double radius, double norm, double lipschitz) {
    MechanismParameters parameters = InBall(MechanismKind::kLapOutput, epsilon, radius, norm);
    parameters.lipschitz = lipschitz;
    return Calibrate(parameters, 1).status();
  };
  EXPECT_THAT(refusal(1, INFINITY, 2, 1), FailsWith(kInvalid, "radius"));
  EXPECT_THAT(refusal(1, 1, std::nan(""), 1), FailsWith(kInvalid, "norm must"));
  EXPECT_THAT(refusal(1, 1, .5, 1), FailsWith(kInvalid, "norm must"));
  EXPECT_THAT(refusal(1, 1e-200, 2, 1e-200), FailsWith(kInvalid, "normal"));
  EXPECT_THAT(refusal(1e-9, 1e300, 2, 1), FailsWith(kInvalid, "scale"));
  EXPECT_THAT(Calibrate(InBall(MechanismKind::kGaussInput, 1, 1, 2), 0),
              FailsWith(kInvalid, "dimension"));
  EXPECT_THAT(Calibrate(InBall(MechanismKind::kPublishedGaussInput, 1, 1, 0), 3),
              FailsWith(kInvalid, "norm must"));
}

}  // namespace
}  // namespace privatemail::client::calibration_test
