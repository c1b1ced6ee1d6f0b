#include "client/privacy/mechanisms/inference_privacy_calibration.h"

#include <cmath>
#include <random>

#include "client/privacy/accounting/gaussian_tradeoff.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(LapOutput, IsPureAndNeverBelowTheQuotient) {
  ASSERT_OK_AND_ASSIGN(const CalibratedLaplace noise, CalibrateLapOutput(.7, {.radius = .3}, 1.1));
  EXPECT_GE(static_cast<long double>(noise.scale), .3L * 1.1L / .7L);
  EXPECT_LE(noise.scale, .3 * 1.1 / .7 * (1 + 1e-14));
  EXPECT_EQ(noise.guarantee.delta, 0);
  EXPECT_EQ(noise.guarantee.radius, .3);
  EXPECT_EQ(noise.guarantee.metric, "l2");
  EXPECT_TRUE(noise.guarantee.proven);
  EXPECT_THAT(Validate(noise.guarantee), IsOk());
}

TEST(GaussOutput, LeavesNoMoreThanDeltaAtItsOwnMu) {
  ASSERT_OK_AND_ASSIGN(const CalibratedGaussian noise,
                       CalibrateGaussOutput(3, 1e-6, {.radius = .25, .p = 1}, 4));
  EXPECT_LE(*GaussianDelta(1 / noise.stddev, 3), 1e-6 * (1 + 1e-8));
  EXPECT_NEAR(*noise.guarantee.gaussian_mu * noise.stddev, 1, 1e-14);
  EXPECT_EQ(noise.guarantee.metric, "l1");
  EXPECT_EQ(CalibrateLapOutput(2, {.radius = .5, .p = 1.999996}, 3)->guarantee.metric, "l1.999996");
  EXPECT_TRUE(noise.guarantee.proven);
}

TEST(PublishedGauss, SaysThatItIsPublished) {
  const CalibratedGaussian output = *CalibratePublishedGaussOutput(.5, 1e-5, {.radius = 1}, 2);
  EXPECT_FALSE(output.guarantee.proven);
  EXPECT_NE(output.guarantee.source.find("as published"), std::string::npos);
  EXPECT_FALSE(CalibratePublishedGaussInput(.5, 1e-5, {.radius = 1}, 8)->guarantee.proven);
  EXPECT_GT(output.stddev, CalibrateGaussOutput(.5, 1e-5, {.radius = 1}, 2)->stddev);
}

TEST(GaussInput, IsGaussOutputOfTheIdentity) {
  EXPECT_EQ(CalibrateGaussInput(1, 1e-5, {.radius = .5}, 64)->stddev,
            CalibrateGaussOutput(1, 1e-5, {.radius = .5}, 1)->stddev);
  EXPECT_NEAR(CalibrateGaussInput(1, 1e-5, {.radius = .5, .p = INFINITY}, 64)->stddev,
              8 * CalibrateGaussInput(1, 1e-5, {.radius = .5}, 64)->stddev, 1e-12);
  EXPECT_EQ(CalibrateGaussInput(1, 1e-5, {.radius = .5, .p = INFINITY}, 64)->guarantee.metric,
            "linf");
}

TEST(IdentityLipschitz, BoundsTheTwoNormByThePNormAndIsReached) {
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

TEST(InferencePrivacy, BadParametersAreNamed) {
  const double nan = std::nan("");
  EXPECT_THAT(CalibrateLapOutput(nan, {.radius = 1}, 1), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(CalibrateLapOutput(1, {.radius = nan}, 1), FailsWith(kInvalid, "radius"));
  EXPECT_THAT(CalibrateLapOutput(1, {.radius = INFINITY}, 1), FailsWith(kInvalid, "radius"));
  EXPECT_THAT(CalibrateLapOutput(1, {.radius = 1}, nan), FailsWith(kInvalid, "Lipschitz"));
  EXPECT_THAT(CalibrateLapOutput(1, {.radius = 1, .p = nan}, 1), FailsWith(kInvalid, "p must"));
  EXPECT_THAT(CalibrateLapOutput(1, {.radius = 1, .p = .5}, 1), FailsWith(kInvalid, "p must"));
  EXPECT_THAT(CalibrateLapOutput(1, {.radius = 1e-200}, 1e-200), FailsWith(kInvalid, "normal"));
  EXPECT_THAT(CalibrateLapOutput(1e-9, {.radius = 1e300}, 1), FailsWith(kInvalid, "scale"));
  EXPECT_THAT(CalibrateGaussOutput(1, nan, {.radius = 1}, 1), FailsWith(kInvalid, "delta"));
  EXPECT_THAT(CalibrateGaussInput(1, .1, {.radius = 1}, 0), FailsWith(kInvalid, "dimension"));
  EXPECT_THAT(CalibratePublishedGaussInput(1, .1, {.radius = 1, .p = 0}, 3),
              FailsWith(kInvalid, "p must"));
}

}  // namespace
}  // namespace privatemail::client
