#include "common/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace privatemail {
namespace {

TEST(ParallelFor, RunsEveryTaskOnce) {
  for (const int count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> runs(count);
    ParallelFor(count, [&](int i) { ++runs[i]; });
    for (int i = 0; i < count; ++i) EXPECT_EQ(runs[i], 1) << i << " of " << count;
  }
}

TEST(ParallelFor, ThrowsWhatATaskThrows) {
  EXPECT_THROW(ParallelFor(100,
                           [](int i) {
                             if (i == 57) throw std::length_error("task 57");
                           }),
               std::length_error);
}

}  // namespace
}  // namespace privatemail
