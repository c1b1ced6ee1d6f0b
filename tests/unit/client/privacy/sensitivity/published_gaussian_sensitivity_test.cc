#include "client/privacy/sensitivity/published_gaussian_sensitivity.h"

#include <cmath>

#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

TEST(PublishedGaussian, RefusesWhatThePrintedFormulaCannotAnswer) {
  EXPECT_THAT(PublishedGaussianSensitivity(10, 1e200, 6, 3, 1),
              FailsWith(absl::StatusCode::kFailedPrecondition, "printed formula"));
  EXPECT_THAT(PublishedGaussianSensitivity(10, .6, 6, -1, 1),
              FailsWith(absl::StatusCode::kInvalidArgument, "largest_label"));
  EXPECT_THAT(PublishedGaussianSensitivity(10, .6, 6, 3, std::nan("")),
              FailsWith(absl::StatusCode::kInvalidArgument, "norm"));
}

}  // namespace
}  // namespace privatemail::client
