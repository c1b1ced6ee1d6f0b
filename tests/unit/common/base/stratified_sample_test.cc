#include "common/base/stratified_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace privatemail {
namespace {

TEST(StratifiedSample, TakesOneOfEachRange) {
  const std::vector<int64_t> sample = StratifiedSample(1000, 100);
  ASSERT_EQ(sample.size(), 100u);
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(sample[static_cast<size_t>(i)] / 10, i);
}

TEST(StratifiedSample, TakesAllIfThereAreNoMore) {
  EXPECT_EQ(StratifiedSample(3, 3), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(StratifiedSample(3, 8), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(StratifiedSample(0, 8).empty());
}

// Every 64th row would be of one class only.
TEST(StratifiedSample, FindsClassesInTurn) {
  constexpr int64_t kClasses = 16, kCount = 1600;
  std::vector<int> of_class(kClasses);
  for (const int64_t row : StratifiedSample(64 * kCount, kCount)) ++of_class[row % kClasses];
  EXPECT_GE(*std::min_element(of_class.begin(), of_class.end()), kCount / kClasses / 2);
}

// By an implementation of MT19937-64 in another language.
TEST(StratifiedSample, EqualsThatOfOtherMachines) {
  EXPECT_EQ(StratifiedSample(1000, 3), (std::vector<int64_t>{25, 630, 866}));
}

}  // namespace
}  // namespace privatemail
