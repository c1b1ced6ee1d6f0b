#include "common/base/background_queue.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/base/thread_pool.h"

namespace privatemail {
namespace {

int Niceness() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }

TEST(RunAtLowPriority, LowersWorkAndItsThreadsOnly) {
  const int before = Niceness();
  int of_work = 0, of_its_thread = 0;
  RunAtLowPriority([&] {
    of_work = Niceness();
    std::thread([&] { of_its_thread = Niceness(); }).join();
  });
  EXPECT_EQ(of_work, std::min(before + 10, 19));
  EXPECT_EQ(of_its_thread, of_work);
  EXPECT_EQ(Niceness(), before);
}

// Pool threads are reused: a low-priority loop must not get those of a normal one, nor vice versa.
TEST(RunAtLowPriority, ParallelForRunsAtPriorityOfCaller) {
  const int before = Niceness();
  const auto of_tasks = [] {
    std::mutex mutex;
    std::set<int> seen;
    const auto task = [&](int, TaskGroup&) {
      const std::lock_guard<std::mutex> guard(mutex);
      seen.insert(Niceness());
      return absl::OkStatus();
    };
    // With an observer the caller runs no task.
    EXPECT_TRUE(ParallelFor(50, task, [] { return absl::OkStatus(); }).ok());
    return seen;
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(of_tasks(), std::set<int>{before});
    std::set<int> low;
    RunAtLowPriority([&] { low = of_tasks(); });
    EXPECT_EQ(low, std::set<int>{std::min(before + 10, 19)});
  }
}

TEST(RunAtLowPriority, RethrowsExceptionOfWork) {
  EXPECT_THROW(RunAtLowPriority([] { throw std::runtime_error("why"); }), std::runtime_error);
}

TEST(BackgroundQueue, RunsJobsInOrderAtLowPriority) {
  const int before = Niceness();
  std::vector<int> order;  // guarded by the queue, which runs one job at a time
  std::promise<int> niceness;
  BackgroundQueue queue;
  for (int i = 0; i < 5; ++i) queue.Add([&, i](const std::atomic<bool>&) { order.push_back(i); });
  queue.Add([&](const std::atomic<bool>&) { niceness.set_value(Niceness()); });
  EXPECT_EQ(niceness.get_future().get(), std::min(before + 10, 19));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

// The address sanitizer sees when a wait reads what the additions have moved.
TEST(BackgroundQueue, TakesJobsWhileItWaitsForTheTimeOfOthers) {
  BackgroundQueue queue;
  for (int i = 0; i < 100; ++i) {
    std::promise<void> ran;
    queue.Add([](const std::atomic<bool>&) {}, absl::Hours(1));
    queue.Add([&](const std::atomic<bool>&) { ran.set_value(); });
    ran.get_future().wait();
  }
}

TEST(BackgroundQueue, DestructorStopsRunningJobAndDropsWaitingOnes) {
  std::promise<void> started;
  bool was_stopped = false, ran_next = false;
  {
    BackgroundQueue queue;
    queue.Add([&](const std::atomic<bool>& stopped) {
      started.set_value();
      while (!stopped) std::this_thread::yield();
      was_stopped = true;
    });
    queue.Add([&](const std::atomic<bool>&) { ran_next = true; });
    started.get_future().wait();
  }
  EXPECT_TRUE(was_stopped);
  EXPECT_FALSE(ran_next);
}

}  // namespace
}  // namespace privatemail
