#include "client/privacy/published_laplace_calibration.h"

#include <cmath>

#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;

// k e + ... of the formula itself, written out.
double Together(double each, double delta, double times) {
  return each * std::sqrt(2 * times * std::log(1 / delta)) +
         times * each * std::expm1(each) / (std::exp(each) + 1);
}

TEST(EpsilonOfEachRelease, SpendsAllThatStrongCompositionAllows) {
  for (const double epsilon : {.1, 1.0, 30.0}) {
    for (const int times : {40, 500, 10000}) {
      const double each = *EpsilonOfEachRelease(epsilon, 1e-5, times);
      if (each * times <= epsilon) continue;  // the plain sum allows more
      EXPECT_LE(Together(each, 1e-5, times), epsilon * (1 + 1e-15));
      EXPECT_GT(Together(each * (1 + 1e-9), 1e-5, times), epsilon);
    }
  }
  EXPECT_GT(*EpsilonOfEachRelease(1, 1e-5, 10000), 10 / 10000.) << "strong composition must win";
}

TEST(EpsilonOfEachRelease, IsThePlainShareForFewReleases) {
  EXPECT_NEAR(*EpsilonOfEachRelease(1, 1e-5, 2), .5, 1e-14);
  EXPECT_LE(*EpsilonOfEachRelease(1, 1e-5, 3) * 3, 1);
  EXPECT_NEAR(*EpsilonOfEachRelease(1, 1e-5, 1), 1, 1e-14);
}

TEST(PublishedLaplace, ScalesTheSensitivityAndSaysThatItIsPublished) {
  ASSERT_OK_AND_ASSIGN(const CalibratedLaplace noise, CalibratePublishedLaplace(1, 1e-5, 3, 2));
  EXPECT_NEAR(noise.scale, 6, 1e-12);
  EXPECT_FALSE(noise.guarantee.proven);
  EXPECT_NE(noise.guarantee.source.find("as published"), std::string::npos);
  EXPECT_EQ(noise.guarantee.epsilon, 1);
  EXPECT_EQ(noise.guarantee.delta, 1e-5);
}

TEST(PublishedLaplaceSensitivity, KeepsBetaInLogsWhereBetaItselfUnderflows) {
  const PublishedLaplaceConstants constants = *PublishedLaplaceOneHot(1200, .5, 5);
  const double ln_beta = *PublishedLaplaceLnBeta(1200, 2);
  EXPECT_EQ(std::exp(ln_beta), 0) << "the setting is meant to underflow";
  EXPECT_GT(*PublishedLaplaceSensitivity(constants, 1200, 2, ln_beta, 1), 0);
}

TEST(PublishedLaplaceSensitivity, RefusesANegativeRadicand) {
  // Small |ln beta|: the second root outweighs the first term.
  const PublishedLaplaceConstants wide{.phi_min = -2, .phi_max = 1};
  EXPECT_THAT(PublishedLaplaceSensitivity(wide, 100, 2, -1e-3, 1),
              FailsWith(kRefused, "under its root"));
}

TEST(PublishedLaplace, BadParametersAreNamed) {
  const double nan = std::nan("");
  EXPECT_THAT(PublishedLaplaceOneHot(0, .5, 5), FailsWith(kInvalid, "n must"));
  EXPECT_THAT(PublishedLaplaceOneHot(10, nan, 5), FailsWith(kInvalid, "alpha"));
  EXPECT_THAT(PublishedLaplaceOneHot(10, .5, nan), FailsWith(kInvalid, "bandwidth"));
  EXPECT_THAT(PublishedLaplaceOneHot(10, .5, .1), FailsWith(kRefused, "degrees"));
  EXPECT_THAT(PublishedLaplaceInteger(10, .5, 5, -1), FailsWith(kInvalid, "largest_label"));
  EXPECT_THAT(PublishedLaplaceInteger(1000, 1e200, 5, 3), FailsWith(kRefused, "phi"));
  EXPECT_THAT(PublishedLaplaceLnBeta(10, 0), FailsWith(kInvalid, "k must"));
  EXPECT_THAT(PublishedLaplaceSensitivity({}, 10, 2, nan, 1), FailsWith(kInvalid, "ln_beta"));
  EXPECT_THAT(PublishedLaplaceSensitivity({}, 10, 2, 1, 1), FailsWith(kInvalid, "ln_beta"));
  EXPECT_THAT(PublishedLaplaceSensitivity({}, 10, 2, -1, nan), FailsWith(kInvalid, "start_stddev"));
  EXPECT_THAT(CalibratePublishedLaplace(1, 1e-5, nan, 2), FailsWith(kInvalid, "sensitivity"));
  EXPECT_THAT(CalibratePublishedLaplace(nan, 1e-5, 1, 2), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(CalibratePublishedLaplace(1, 0, 1, 2), FailsWith(kInvalid, "delta"));
  EXPECT_THAT(CalibratePublishedLaplace(1, .1, 1, 0), FailsWith(kInvalid, "private_iterations"));
}

}  // namespace
}  // namespace privatemail
