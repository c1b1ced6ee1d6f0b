#include "common/base/one_at_a_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
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
