#include "common/base/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <thread>

namespace privatemail::testing {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

TEST(Workers, WorkAtOnceHoweverManyAreAtWork) {
  constexpr int kWorks = 40;
  std::promise<void> all_there;
  const std::shared_future<void> released = all_there.get_future().share();
  std::atomic<int> there = 0;
  std::atomic<int> in_time = 0;
  {
    Workers workers;
    for (int i = 0; i < kWorks; ++i) {
      workers.Run([&] {
        if (++there == kWorks) all_there.set_value();
        if (released.wait_for(kPatience) == std::future_status::ready) ++in_time;
      });
    }
  }
  EXPECT_EQ(in_time, kWorks);
}

TEST(Workers, TakeAThreadThatIsIdle) {
  Workers workers;
  std::set<std::thread::id> threads;
  for (int i = 0; i < 20; ++i) {
    std::promise<std::thread::id> done;
    workers.Run([&] { done.set_value(std::this_thread::get_id()); });
    threads.insert(done.get_future().get());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_LT(threads.size(), 20u);
}

TEST(Workers, EndAfterAllThatWasGivenToThem) {
  std::atomic<int> done = 0;
  {
    Workers workers;
    for (int i = 0; i < 100; ++i) workers.Run([&] { ++done; });
  }
  EXPECT_EQ(done, 100);
}

TEST(Workers, KeepNothingOfWhatIsDone) {
  Workers workers;
  const auto held = std::make_shared<int>(1);
  workers.Run([held] {});
  for (int i = 0; i < 1000 && held.use_count() > 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace privatemail::testing
