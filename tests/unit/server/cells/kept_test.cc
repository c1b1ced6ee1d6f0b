// What is kept of what was made, of things that are numbers.
#include "server/cells/kept.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>
#include <vector>

#include "tests/testing/matchers.h"

namespace privatemail::testing {
namespace {

class KeptTest : public ::testing::Test {
 protected:
  using Things = Kept<int, int>;

  static constexpr int64_t kRoom = 100'000;

  static bool Never() { return false; }

  // The thing that comes for a wish for so many at least.
  int Ask(int key, int least) {
    const auto thing = kept_.Get(
        key, [&](int kept) { return kept >= least; }, Never,
        [&] {
          ++made_;
          return least;
        });
    EXPECT_THAT(thing, IsOk());
    return **thing;
  }

  // Each as large as its number says.
  Things kept_{kRoom + 4 * Things::kEntryBytes, [](int thing) { return int64_t{thing}; }};
  int made_ = 0;
};

TEST_F(KeptTest, WhatServesIsGivenAndOtherwiseReplaced) {
  EXPECT_EQ(Ask(1, 50), 50);
  EXPECT_EQ(Ask(1, 20), 50);
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(Ask(1, 60), 60);
  EXPECT_EQ(Ask(1, 50), 60);
  EXPECT_EQ(made_, 2);
}

TEST_F(KeptTest, ForgetsWhatWasAskedForLeastLately) {
  Ask(1, 40'000);
  Ask(2, 40'000);
  Ask(1, 40'000);
  EXPECT_EQ(made_, 2);
  Ask(3, 40'000);  // no room for three: the second goes
  Ask(1, 40'000);
  EXPECT_EQ(made_, 3);
  Ask(2, 40'000);
  EXPECT_EQ(made_, 4);
  Ask(4, 1'000'000);  // one that is too large by itself is given, and the only one to be kept
  Ask(4, 1'000'000);
  EXPECT_EQ(made_, 5);
  Ask(2, 40'000);
  EXPECT_EQ(made_, 6);
}

TEST_F(KeptTest, ManySmallThingsTakeRoomToo) {
  constexpr int kMany = 1000;  // more entries than there is room for
  for (int key = 0; key < kMany; ++key) Ask(key, 1);
  made_ = 0;
  Ask(kMany - 1, 1);
  EXPECT_EQ(made_, 0);
  Ask(0, 1);
  EXPECT_EQ(made_, 1);
}

TEST_F(KeptTest, ReplacingOneMakesNoRoomTwice) {
  for (int least = 100; least <= 10'000; least += 100)
    Ask(1, least);  // each in the place of the one before
  Ask(2, 30'000);
  Ask(3, 30'000);
  Ask(1, 100);
  EXPECT_EQ(made_, 102);
}

TEST_F(KeptTest, WhoIsGoneDoesNotWaitForTheThingOfAnother) {
  std::atomic<bool> making = false, let_go = false;
  std::thread slow([&] {
    const auto thing = kept_.Get(
        1, [](int) { return true; }, Never,
        [&] {
          making = true;
          while (!let_go) std::this_thread::yield();
          return 10;
        });
    EXPECT_THAT(thing, IsOk());
  });
  while (!making) std::this_thread::yield();
  std::atomic<int> asked = 0;
  EXPECT_THAT(kept_.Get(
                  2, [](int) { return true; }, [&] { return ++asked == 3; }, [] { return 0; }),
              FailsWith(absl::StatusCode::kCancelled, "the caller is gone"));
  EXPECT_EQ(asked, 3) << "asked again while it waited";
  let_go = true;
  slow.join();
  EXPECT_EQ(Ask(2, 10), 10);
}

TEST_F(KeptTest, IsOpenToOthersAfterAThingThatCouldNotBeMade) {
  const auto no_memory = []() -> int { throw std::bad_alloc(); };
  EXPECT_THROW((void)kept_.Get(
                   1, [](int) { return true; }, Never, no_memory),
               std::bad_alloc);
  EXPECT_EQ(Ask(1, 10), 10);
}

// Also what ThreadSanitizer looks at.
TEST_F(KeptTest, ManyAskAtOnceAndItIsMadeOnce) {
  std::atomic<int> making = 0, made = 0, wrong = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const int key = i % 5;
        const auto thing = kept_.Get(
            key, [](int) { return true; }, Never,
            [&] {
              if (++making != 1) ++wrong;
              ++made;
              --making;
              return 10 + key;
            });
        if (!thing.ok() || **thing != 10 + key) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(made, 5);
}

}  // namespace
}  // namespace privatemail::testing
