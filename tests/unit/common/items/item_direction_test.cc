#include "common/items/item_direction.h"

#include <limits>
#include <vector>

#include "tests/testing/matchers.h"

namespace privatemail {
namespace {

absl::Status Check(Metric metric, const std::vector<float>& values) {
  return CheckHasSimilarity("query", metric, values.data(), std::ssize(values));
}

TEST(ItemDirection, IsNeededByCosineAlone) {
  EXPECT_THAT(
      Check(Metric::kCosine, {0, 0}),
      FailsWith(kInvalid, "query: all 2 values are zero, expected a vector with a direction"));
  for (const Metric metric : {Metric::kDot, Metric::kEuclidean}) {
    EXPECT_THAT(Check(metric, {0, -0.F}), IsOk());
    EXPECT_THAT(Check(metric, {0, std::numeric_limits<float>::denorm_min()}), IsOk());
    EXPECT_THAT(Check(metric, {0, std::numeric_limits<float>::quiet_NaN()}),
                FailsWith(kInvalid, "nan"));
    EXPECT_THAT(Check(metric, {0, std::numeric_limits<float>::infinity()}),
                FailsWith(kInvalid, "inf"));
  }
}

}  // namespace
}  // namespace privatemail
