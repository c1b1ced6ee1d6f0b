#include "common/base/parallel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

// The thread sanitizer else ends a forked process at its first thread.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace privatemail {
namespace {

TEST(ParallelFor, RunsEveryTaskOnce) {
  for (const int count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> runs(count);
    ParallelFor(count, [&](int i) { ++runs[i]; });
    for (int i = 0; i < count; ++i) EXPECT_EQ(runs[i], 1) << i << " of " << count;
  }
}

TEST(ParallelFor, TakesTheThreadsThatItHadBefore) {
  std::mutex mutex;
  std::set<pid_t> threads;  // ids of the system, which begins from the first only after the last
  for (int round = 0; round < 200; ++round) {
    ParallelFor(4, [&](int) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      const std::lock_guard<std::mutex> guard(mutex);
      threads.insert(::gettid());
    });
  }
  // One that has ended its work may not be waiting yet when the next is given out.
  EXPECT_LT(threads.size(), 4 * std::thread::hardware_concurrency());
}

TEST(ParallelFor, WorksInAForkedProcess) {
  const auto task = [](int, SharedWork&) { return absl::OkStatus(); };
  const auto observer = [] { return absl::OkStatus(); };
  ASSERT_TRUE(ParallelFor(4, task, observer).ok());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);  // which ends who waits for threads that were not forked
    ::_exit(ParallelFor(4, task, observer).ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ParallelFor, ThrowsWhatATaskThrows) {
  EXPECT_THROW(ParallelFor(100,
                           [](int i) {
                             if (i == 57) throw std::length_error("task 57");
                           }),
               std::length_error);
}

TEST(ParallelFor, ThrowsWhenTheOthersHaveEnded) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
  const auto task = [&](int) {
    if (std::this_thread::get_id() == caller) {
      // On a machine with one core there are no others.
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

TEST(ParallelFor, ReturnsTheFirstStatusThatIsNotOkAndBeginsNoFurtherTask) {
  std::atomic<int> begun = 0;
  const auto task = [&](int i, SharedWork&) {
    ++begun;
    return i == 3 ? absl::DataLossError("task 3") : absl::OkStatus();
  };
  EXPECT_EQ(ParallelFor(1000000, task, nullptr), absl::DataLossError("task 3"));
  EXPECT_LT(begun, 1000000);
  begun = 0;
  EXPECT_EQ(ParallelFor(1000000, task, [] { return absl::OkStatus(); }),
            absl::DataLossError("task 3"));
}

TEST(ParallelFor, AsksItsObserverFromTheCallersThreadWhileTasksRun) {
  const std::thread::id caller = std::this_thread::get_id();
  int asked = 0;
  const auto wait_to_be_stopped = [](int, SharedWork& work) {
    while (!work.stopped()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return absl::OkStatus();
  };
  const auto thrice = [&] {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    return ++asked == 3 ? absl::CancelledError("enough") : absl::OkStatus();
  };
  EXPECT_EQ(ParallelFor(10, wait_to_be_stopped, thrice), absl::CancelledError("enough"));
  EXPECT_EQ(asked, 3);
}

TEST(ParallelFor, AnObserverThatSaysNoAtOnceLetsNoTaskBegin) {
  const auto never = [](int, SharedWork&) -> absl::Status { throw std::logic_error("began"); };
  EXPECT_EQ(ParallelFor(10, never, [] { return absl::CancelledError("no"); }),
            absl::CancelledError("no"));
}

TEST(ParallelFor, TasksTakeTurnsInTheirOrder) {
  std::vector<int> order;
  const auto task = [&](int i, SharedWork& work) {
    std::this_thread::sleep_for(std::chrono::microseconds((i * 37) % 100));
    if (work.AwaitTurn(i)) order.push_back(i);
    work.PassTurn();
    return absl::OkStatus();
  };
  ASSERT_TRUE(ParallelFor(200, task, nullptr).ok());
  ASSERT_EQ(order.size(), 200u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(ParallelFor, WhoWaitsForATurnOfATaskThatFailedOrThrewWaitsNoLonger) {
  const auto task_that = [](bool throws) {
    return [throws](int i, SharedWork& work) -> absl::Status {
      if (i == 1 && throws) throw std::length_error("task 1");
      if (i == 1) return absl::DataLossError("task 1");
      work.AwaitTurn(i);
      if (i == 0) work.PassTurn();
      return absl::OkStatus();
    };
  };
  EXPECT_EQ(ParallelFor(10, task_that(false), nullptr), absl::DataLossError("task 1"));
  EXPECT_THROW(ParallelFor(10, task_that(true), nullptr).IgnoreError(), std::length_error);
}

}  // namespace
}  // namespace privatemail
