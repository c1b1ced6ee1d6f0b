#include "client/cli/query_targets.h"

#include <gtest/gtest.h>

namespace privatemail::client::cli {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

TEST(WaitForDeparture, IsAMultipleOfASecondAndATenthForEachFurtherImage) {
  TargetOptions options;
  options.images = {"one.png", "two.png"};
  const Clock::time_point arrived = Clock::now() - milliseconds(10'050);
  WaitForDeparture(options, arrived);
  EXPECT_GE(Clock::now(), arrived + milliseconds(11'000)) << "10 * 1.1 s";
}

TEST(WaitForDeparture, VectorsWaitForNothing) {
  const Clock::time_point later = Clock::now() + std::chrono::hours(1);
  WaitForDeparture(TargetOptions(), later);
  EXPECT_LT(Clock::now(), later);
}

}  // namespace
}  // namespace privatemail::client::cli
