#include "server/access/admission.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/testing/matchers.h"

namespace privatemail::testing {
namespace {

constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;

Limits Places(int64_t concurrent, int64_t queued, double seconds) {
  Limits limits;
  limits.max_concurrent = concurrent;
  limits.max_queued = queued;
  limits.queue_seconds = seconds;
  return limits;
}

bool Never() { return false; }

void WaitUntil(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000 && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_TRUE(condition());
}

TEST(Admission, HasAsManyPlacesAsItWasGivenAndTakesThemBack) {
  Admission admission(Places(2, 0, 5));
  {
    const auto first = admission.Enter(Never);
    const auto second = admission.Enter(Never);
    EXPECT_THAT(second, IsOk());
    EXPECT_THAT(admission.Enter(Never),
                FailsWith(kExhausted,
                          "2 calls are worked on (max_concurrent 2) and 0 wait "
                          "(max_queued 0)"));
    EXPECT_EQ(admission.working(), 2);
  }
  EXPECT_EQ(admission.working(), 0);
  EXPECT_THAT(admission.Enter(Never), IsOk());
}

TEST(Admission, RefusesWhoWaitsTooLong) {
  Admission admission(Places(1, 1, .05));
  const auto place = admission.Enter(Never);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(admission.Enter(Never),
              FailsWith(kExhausted, "the call waited 0.05 s (queue_seconds)"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  EXPECT_EQ(admission.waiting(), 0);
}

TEST(Admission, LetsGoOfACallerWhoIsGone) {
  Admission admission(Places(1, 1, 60));
  const auto place = admission.Enter(Never);
  EXPECT_THAT(admission.Enter([] { return true; }), FailsWith(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(admission.waiting(), 0);
}

TEST(Admission, ServesInTheOrderOfArrival) {
  Admission admission(Places(1, 3, 60));
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> callers;
  {
    const auto place = admission.Enter(Never);
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back([&, i] {
        const auto mine = admission.Enter(Never);
        EXPECT_THAT(mine, IsOk());
        const std::lock_guard<std::mutex> guard(mutex);
        order.push_back(i);
      });
      WaitUntil([&] { return admission.waiting() == i + 1; });
    }
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(Admission, NewLimitsHoldForThoseWhoWait) {
  Admission admission(Places(1, 1, 60));
  const auto place = admission.Enter(Never);
  std::thread caller([&] { EXPECT_THAT(admission.Enter(Never), IsOk()); });
  WaitUntil([&] { return admission.waiting() == 1; });
  admission.SetLimits(Places(2, 1, 60));
  caller.join();
}

TEST(Admission, NeverHasMoreAtWorkThanPlaces) {
  Admission admission(Places(3, 100, 60));
  std::atomic<int> working = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 20; ++i) {
    callers.emplace_back([&] {
      for (int turn = 0; turn < 20; ++turn) {
        const auto place = admission.Enter(Never);
        ASSERT_THAT(place, IsOk());
        const int now = ++working;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        --working;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(most, 3);
  EXPECT_EQ(admission.working(), 0);
}

}  // namespace
}  // namespace privatemail::testing
