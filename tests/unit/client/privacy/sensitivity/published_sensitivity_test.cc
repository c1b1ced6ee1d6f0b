#include "client/privacy/sensitivity/published_sensitivity.h"

#include <cmath>

#include "tests/testing/matchers.h"

namespace privatemail::client::published_sensitivity_test {
namespace {

TEST(PublishedLaplaceSensitivity, UnderflowingBetaWorksInLogs) {
  const PublishedLaplaceConstants constants = *PublishedLaplaceOneHot(1200, .5, 5);
  const double ln_beta = *PublishedLaplaceLnBeta(1200, 2);
  EXPECT_EQ(std::exp(ln_beta), 0) << "the setting is meant to underflow";
  EXPECT_GT(*PublishedLaplaceSensitivity(constants, 1200, 2, ln_beta, 1), 0);
}

TEST(PublishedLaplaceSensitivity, NegativeRadicandIsRefused) {
  // Small |ln beta|: the second root outweighs the first term.
  const PublishedLaplaceConstants wide{.phi_min = -2, .phi_max = 1};
  EXPECT_THAT(PublishedLaplaceSensitivity(wide, 100, 2, -1e-3, 1),
              FailsWith(kFailedPrecondition, "under its root"));
}

TEST(PublishedLaplace, BadParametersAreNamed) {
  const double nan = std::nan("");
  EXPECT_THAT(PublishedLaplaceOneHot(0, .5, 5), FailsWith(kInvalid, "n must"));
  EXPECT_THAT(PublishedLaplaceOneHot(10, nan, 5), FailsWith(kInvalid, "alpha"));
  EXPECT_THAT(PublishedLaplaceOneHot(10, .5, nan), FailsWith(kInvalid, "bandwidth"));
  EXPECT_THAT(PublishedLaplaceOneHot(10, .5, .1), FailsWith(kFailedPrecondition, "degrees"));
  EXPECT_THAT(PublishedLaplaceInteger(10, .5, 5, -1), FailsWith(kInvalid, "largest_label"));
  EXPECT_THAT(PublishedLaplaceInteger(1000, 1e200, 5, 3), FailsWith(kFailedPrecondition, "phi"));
  EXPECT_THAT(PublishedLaplaceLnBeta(10, 0), FailsWith(kInvalid, "k must"));
  EXPECT_THAT(PublishedLaplaceSensitivity({}, 10, 2, nan, 1), FailsWith(kInvalid, "ln_beta"));
  EXPECT_THAT(PublishedLaplaceSensitivity({}, 10, 2, 1, 1), FailsWith(kInvalid, "ln_beta"));
  EXPECT_THAT(PublishedLaplaceSensitivity({}, 10, 2, -1, nan), FailsWith(kInvalid, "start_stddev"));
}

TEST(PublishedGaussian, BadParametersAreNamed) {
  EXPECT_THAT(PublishedGaussianSensitivity(10, 1e200, 6, 3, 1),
              FailsWith(kFailedPrecondition, "printed formula"));
  EXPECT_THAT(PublishedGaussianSensitivity(10, .6, 6, -1, 1), FailsWith(kInvalid, "largest_label"));
  EXPECT_THAT(PublishedGaussianSensitivity(10, .6, 6, 3, std::nan("")),
              FailsWith(kInvalid, "norm"));
}

}  // namespace
}  // namespace privatemail::client::published_sensitivity_test
