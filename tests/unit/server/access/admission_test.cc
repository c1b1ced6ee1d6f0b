#include "server/access/admission.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"
#include "tests/testing/wait_until.h"

namespace privatemail::testing {

using namespace server;  // NOLINT: every test of the server

namespace {

Limits Places(int64_t concurrent, int64_t queued, double seconds) {
  Limits limits;
  limits.max_concurrent = concurrent;
  limits.max_queued = queued;
  limits.queue_seconds = seconds;
  return limits;
}

bool Never() { return false; }

const Admission::Caller kAnyone;

// Enters and waits.
absl::StatusOr<Admission::Ticket> Enter(Admission* admission, const std::function<bool()>& gone,
                                        const Admission::Caller& caller = kAnyone) {
  absl::StatusOr<Admission::Ticket> ticket = admission->Enter(caller);
  if (!ticket.ok()) return ticket;
  if (absl::Status status = ticket->Await(gone); !status.ok()) return status;
  return ticket;
}

TEST(Admission, AdmitsUpToMaxConcurrent) {
  Admission admission(Places(2, 0, 5));
  {
    const auto first = Enter(&admission, Never);
    const auto second = Enter(&admission, Never);
    EXPECT_THAT(second, IsOk());
    EXPECT_THAT(Enter(&admission, Never),
                FailsWith(kExhausted, "2 calls are running (max_concurrent 2) and 0 wait"));
    admission.SetLimits(Places(2, 1, .05));
    EXPECT_THAT(Enter(&admission, Never), FailsWith(kExhausted, "the call waited 0.05 s while"));
    EXPECT_EQ(admission.waiting(), 0);
  }
  EXPECT_EQ(admission.running(), 0);
  EXPECT_THAT(Enter(&admission, Never), IsOk());
}

TEST(Admission, TimeInWhichTheProcessIsStoppedDoesNotCount) {
  Admission admission(Places(1, 1, 2));
  absl::StatusOr<Admission::Ticket> place = Enter(&admission, Never);
  ASSERT_THAT(place, IsOk());
  std::thread other([&] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::kill(::getppid(), SIGSTOP);
      ::sleep(3);
      ::kill(::getppid(), SIGCONT);
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    const Admission::Ticket ended = *std::move(place);
  });
  EXPECT_THAT(Enter(&admission, Never), IsOk());
  other.join();
}

TEST(Admission, CancelledCallerLeavesQueue) {
  Admission admission(Places(1, 1, 60));
  const auto place = Enter(&admission, Never);
  EXPECT_THAT(Enter(&admission, [] { return true; }), FailsWith(kCancelled));
  EXPECT_EQ(admission.waiting(), 0);
}

TEST(Admission, AdmitsInOrderOfArrival) {
  Admission admission(Places(1, 3, 60));
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> callers;
  {
    const auto place = Enter(&admission, Never);
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back([&, i] {
        const auto mine = Enter(&admission, Never);
        EXPECT_THAT(mine, IsOk());
        const std::lock_guard<std::mutex> guard(mutex);
        order.push_back(i);
      });
      ASSERT_TRUE(WaitUntil([&] { return admission.waiting() == i + 1; }));
    }
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(Admission, NewLimitsApplyToWaitingCalls) {
  Admission admission(Places(1, 1, 60));
  const auto place = Enter(&admission, Never);
  std::thread caller([&] { EXPECT_THAT(Enter(&admission, Never), IsOk()); });
  ASSERT_TRUE(WaitUntil([&] { return admission.waiting() == 1; }));
  admission.SetLimits(Places(2, 1, 60));
  caller.join();
}

TEST(Admission, NeverExceedsMaxConcurrent) {
  Admission admission(Places(3, 100, 3600));
  std::atomic<int> working = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 20; ++i) {
    callers.emplace_back([&] {
      for (int turn = 0; turn < 20; ++turn) {
        ASSERT_OK_AND_ASSIGN(const auto place, Enter(&admission, Never));
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
  EXPECT_EQ(admission.running(), 0);
}

TEST(Admission, KeyTakesHalfOfThePlaces) {
  Admission admission(Places(6, 9, .05));
  const Admission::Caller greedy = {"greedy", false};
  std::vector<absl::StatusOr<Admission::Ticket>> tickets;
  for (int i = 0; i < 6; ++i) tickets.push_back(admission.Enter(greedy));
  EXPECT_EQ(admission.running(), 3);
  EXPECT_EQ(admission.waiting(), 3);
  EXPECT_THAT(admission.Enter(greedy),
              FailsWith(kExhausted,
                        "key greedy has 3 running calls and 3 waiting ones, the most of "
                        "one key (half of max_concurrent 6, a quarter for calls that need the "
                        "store)"));
  // Calls that wait for their own key do not block later callers.
  EXPECT_THAT(Enter(&admission, Never, {"other", false}), IsOk());
  for (int i = 0; i < 3; ++i) tickets.push_back(admission.Enter({"other", false}));
  EXPECT_FALSE(tickets[3]->WaitsForOthers()) << "but for its own key";
  tickets.push_back(admission.Enter({"third", false}));
  EXPECT_TRUE(tickets.back()->WaitsForOthers());
}

TEST(Admission, WaitingCallOfKeyRunsWhenAnotherEnds) {
  Admission admission(Places(3, 9, .05));
  const Admission::Caller key = {"key", false};
  auto first = std::make_unique<absl::StatusOr<Admission::Ticket>>(admission.Enter(key));
  ASSERT_OK_AND_ASSIGN(auto second, admission.Enter(key));
  EXPECT_EQ(admission.running(), 1);
  first.reset();
  EXPECT_THAT(second.Await(Never), IsOk());
  EXPECT_EQ(admission.running(), 1);
}

TEST(Admission, StoreCallsTakeHalfOfPlacesAndQueue) {
  Admission admission(Places(4, 4, .05));
  const auto writer = [](int key) {
    return Admission::Caller{
        .key = absl::StrCat("key", key), .is_operator = true, .uses_store = true};
  };
  std::deque<absl::StatusOr<Admission::Ticket>> tickets;
  for (int i = 0; i < 4; ++i) tickets.push_back(admission.Enter(writer(i)));
  EXPECT_EQ(admission.running(), 2);
  EXPECT_EQ(admission.waiting(), 2);
  EXPECT_THAT(admission.Enter(writer(4)), FailsWith(kExhausted, "calls that need the store"));
  EXPECT_FALSE(tickets[2]->WaitsForOthers()) << "but for other store calls";
  EXPECT_THAT(Enter(&admission, Never, {"searcher", false}), IsOk());
  tickets.pop_front();
  EXPECT_TRUE(tickets[1]->IsAdmitted());
}

TEST(Admission, KeyTakesHalfOfThePlacesForTheStore) {
  Admission admission(Places(8, 8, .05));
  const Admission::Caller greedy = {.key = "greedy", .uses_store = true};
  std::vector<absl::StatusOr<Admission::Ticket>> tickets;
  for (int i = 0; i < 4; ++i) tickets.push_back(admission.Enter(greedy));
  EXPECT_EQ(admission.running(), 2);
  EXPECT_EQ(admission.waiting(), 2);
  EXPECT_THAT(admission.Enter(greedy), FailsWith(kExhausted, "the most of one key"));
  EXPECT_THAT(Enter(&admission, Never, {.key = "other", .uses_store = true}), IsOk());
  EXPECT_THAT(Enter(&admission, Never, {.key = "greedy"}), IsOk()) << "searches";
}

TEST(Admission, ReservesPlacesForOperators) {
  Admission admission(Places(16, 1, .05));  // 2 of 16
  std::vector<Admission::Ticket> tickets;
  for (int i = 0; i < 14; ++i) {
    ASSERT_OK_AND_ASSIGN(auto ticket, Enter(&admission, Never, {absl::StrCat("key", i), false}));
    tickets.push_back(std::move(ticket));
  }
  EXPECT_THAT(Enter(&admission, Never, {"late", false}), FailsWith(kExhausted, "the call waited"));
  const auto waiting = admission.Enter({"waits", false});
  EXPECT_THAT(Enter(&admission, Never, {"later", false}), FailsWith(kExhausted, "and 1 wait"));
  const auto one = Enter(&admission, Never, {"admin", true});
  const auto two = Enter(&admission, Never, {"admin", true});
  EXPECT_THAT(two, IsOk());
  EXPECT_EQ(admission.running(), 16);
}

}  // namespace
}  // namespace privatemail::testing
