#include "common/base/one_at_a_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace privatemail {
namespace {

bool Never() { return false; }

TEST(OneAtATime, GivesEachATurnAndNeverTwoAtOnce) {
  OneAtATime turns;
  int turns_taken = 0;  // guarded by the turns alone, which ThreadSanitizer looks at
  std::atomic<int> at_once = 0, most = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto turn = turns.Wait(Never);
        most = std::max<int>(most, ++at_once);
        ++turns_taken;
        --at_once;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(turns_taken, 800);
  EXPECT_EQ(most, 1);
}

TEST(OneAtATime, WhoCameFirstHasTheFirstTurn) {
  constexpr int kCallers = 8;
  OneAtATime turns;
  auto first = turns.Wait(Never);
  std::vector<int> order;  // guarded by the turns
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    std::atomic<int> asked = 0;
    callers.emplace_back([&turns, &order, &asked, caller] {
      bool here = false;
      const auto turn = turns.Wait([&] {
        if (!std::exchange(here, true)) ++asked;
        return false;
      });
      order.push_back(caller);
    });
    while (asked == 0) std::this_thread::yield();
  }
  first.reset();
  // Whoever comes at the very moment in which a turn ends waits as well.
  {
    const auto last = turns.Wait(Never);
    EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(OneAtATime, WhoGivesUpGoesWithoutATurn) {
  OneAtATime turns;
  {
    const auto first = turns.Wait(Never);
    int asked = 0;
    EXPECT_FALSE(turns.Wait([&] { return ++asked == 3; }).has_value());
    EXPECT_EQ(asked, 3) << "asked again while it waits";
  }
  EXPECT_FALSE(turns.Wait([] { return true; }).has_value()) << "also where nobody has a turn";
  EXPECT_TRUE(turns.Wait(Never).has_value());
}

TEST(OneAtATime, ATurnThatIsMovedEndsOnce) {
  OneAtATime turns;
  auto first = turns.Wait(Never);
  {
    const OneAtATime::Turn moved = *std::move(first);
    first.reset();
    int asked = 0;
    EXPECT_FALSE(turns.Wait([&] { return ++asked > 1; }).has_value());
  }
  EXPECT_TRUE(turns.Wait(Never).has_value());
}

}  // namespace
}  // namespace privatemail
