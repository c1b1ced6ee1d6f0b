#include "server/access/line_budget.h"

#include <gtest/gtest.h>

namespace privatemail::server {
namespace {

using Clock = LineBudget::Clock;

TEST(LineBudget, LeavesOutStrangersBeyondSoManyASecondAndTellsOnceHowMany) {
  LineBudget budget;
  const Clock::time_point start = Clock::now();
  uint64_t written = 0;
  for (int i = 0; i < 1000; ++i) {
    const LineBudget::Verdict verdict = budget.Take(/*has_key=*/false, start);
    written += verdict.write ? 1 : 0;
    EXPECT_EQ(verdict.left_out, 0u);
  }
  EXPECT_EQ(written, LineBudget::kLinesPerSecond);
  const Clock::time_point later = start + std::chrono::seconds(1);
  const LineBudget::Verdict next = budget.Take(/*has_key=*/false, later);
  EXPECT_TRUE(next.write);
  EXPECT_EQ(next.left_out, 1000 - LineBudget::kLinesPerSecond);
  EXPECT_EQ(budget.Take(/*has_key=*/false, later).left_out, 0u);
}

TEST(LineBudget, WritesEveryLineOfACallerWithAKey) {
  LineBudget budget;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < 1000; ++i) budget.Take(/*has_key=*/false, start);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(budget.Take(/*has_key=*/true, start).write);
}

}  // namespace
}  // namespace privatemail::server
