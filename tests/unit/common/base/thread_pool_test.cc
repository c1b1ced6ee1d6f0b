#include "common/base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/testing/fork.h"

// Otherwise the thread sanitizer ends a forked process at its first thread.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace privatemail {
namespace {

constexpr auto kTimeout = std::chrono::minutes(5);

TEST(ThreadPool, RunsAllJobsConcurrentlyAndWaitsForThem) {
  constexpr int kJobs = 40;
  std::promise<void> all_started;
  const std::shared_future<void> released = all_started.get_future().share();
  std::atomic<int> started = 0;
  std::atomic<int> in_time = 0;
  {
    ThreadPool pool;
    for (int i = 0; i < kJobs; ++i) {
      pool.Run([&] {
        if (++started == kJobs) all_started.set_value();
        if (released.wait_for(kTimeout) == std::future_status::ready) ++in_time;
      });
    }
  }
  EXPECT_EQ(in_time, kJobs);
}

TEST(ThreadPool, ReleasesCapturesOfFinishedJob) {
  ThreadPool pool;
  const auto held = std::make_shared<int>(1);
  pool.Run([held] {});
  for (int i = 0; i < 1000 && held.use_count() > 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST(ParallelFor, RunsEachTaskOnce) {
  for (const int count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> runs(count);
    ParallelFor(count, [&](int i) { ++runs[i]; });
    for (int i = 0; i < count; ++i) EXPECT_EQ(runs[i], 1) << i << " of " << count;
  }
}

TEST(ParallelFor, WorksInForkedProcess) {
  const auto task = [](int, TaskGroup&) { return absl::OkStatus(); };
  const auto observer = [] { return absl::OkStatus(); };
  ASSERT_TRUE(ParallelFor(4, task, observer).ok());
  EXPECT_TRUE(HoldsInFork([&] { return ParallelFor(4, task, observer).ok(); }))
      << "it waited for its parent's threads";
}

TEST(ParallelFor, RethrowsAfterAllTasksEnd) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
  const auto task = [&](int) {
    if (std::this_thread::get_id() == caller) {
      // A machine with one core starts no other thread.
      for (int i = 0; i < 1000 && begun == 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      throw std::length_error("the caller's");
    }
    ++begun;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ++ended;
  };
  EXPECT_THROW(ParallelFor(3, task), std::length_error);
  EXPECT_EQ(ended, begun);
}

TEST(ParallelFor, ReturnsFirstErrorAndStartsNoFurtherTask) {
  std::atomic<int> begun = 0;
  const auto task = [&](int i, TaskGroup&) {
    ++begun;
    return i == 3 ? absl::DataLossError("task 3") : absl::OkStatus();
  };
  EXPECT_EQ(ParallelFor(1000000, task, nullptr), absl::DataLossError("task 3"));
  EXPECT_LT(begun, 1000000);
  begun = 0;
  EXPECT_EQ(ParallelFor(1000000, task, [] { return absl::OkStatus(); }),
            absl::DataLossError("task 3"));
}

TEST(ParallelFor, PollsObserverOnCallersThread) {
  const std::thread::id caller = std::this_thread::get_id();
  int polls = 0;
  const auto wait_until_stopped = [](int, TaskGroup& group) {
    while (!group.stopped()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return absl::OkStatus();
  };
  const auto thrice = [&] {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    return ++polls == 3 ? absl::CancelledError("enough") : absl::OkStatus();
  };
  EXPECT_EQ(ParallelFor(10, wait_until_stopped, thrice), absl::CancelledError("enough"));
  EXPECT_EQ(polls, 3);
}

TEST(ParallelFor, ObserverErrorAtStartRunsNoTask) {
  const auto never = [](int, TaskGroup&) -> absl::Status { throw std::logic_error("began"); };
  EXPECT_EQ(ParallelFor(10, never, [] { return absl::CancelledError("no"); }),
            absl::CancelledError("no"));
}

TEST(ParallelFor, OrderedSectionsRunInAscendingOrder) {
  std::vector<int> order;
  const auto task = [&](int i, TaskGroup& group) {
    std::this_thread::sleep_for(std::chrono::microseconds((i * 37) % 100));
    group.RunInOrder(i, [&] { order.push_back(i); });
    return absl::OkStatus();
  };
  ASSERT_TRUE(ParallelFor(200, task, nullptr).ok());
  ASSERT_EQ(order.size(), 200u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(ParallelFor, FailedTaskReleasesOrderedWaiters) {
  const auto task_that = [](bool throws) {
    return [throws](int i, TaskGroup& group) -> absl::Status {
      if (i == 1 && throws) throw std::length_error("task 1");
      if (i == 1) return absl::DataLossError("task 1");
      group.RunInOrder(i, [] {});
      return absl::OkStatus();
    };
  };
  EXPECT_EQ(ParallelFor(10, task_that(false), nullptr), absl::DataLossError("task 1"));
  EXPECT_THROW(ParallelFor(10, task_that(true), nullptr).IgnoreError(), std::length_error);
}

}  // namespace
}  // namespace privatemail
