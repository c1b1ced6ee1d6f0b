#include "common/base/low_priority.h"

#include <sys/resource.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "common/base/parallel.h"

namespace privatemail {
namespace {

int Niceness() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }

TEST(AtLowPriority, IsTheWorkAndWhatItStartsButNotTheCaller) {
  const int before = Niceness();
  int of_work = 0, of_its_thread = 0;
  AtLowPriority([&] {
    of_work = Niceness();
    std::thread([&] { of_its_thread = Niceness(); }).join();
  });
  EXPECT_EQ(of_work, std::min(before + 10, 19));
  EXPECT_EQ(of_its_thread, of_work);
  EXPECT_EQ(Niceness(), before);
}

// Threads are kept from one piece of work to the next: neither of the two may have the other's.
TEST(AtLowPriority, IsThatOfWorkThatIsSharedOutWhoeverDidSoBefore) {
  const int before = Niceness();
  const auto of_tasks = [] {
    std::mutex mutex;
    std::set<int> seen;
    const auto task = [&](int, SharedWork&) {
      const std::lock_guard<std::mutex> guard(mutex);
      seen.insert(Niceness());
      return absl::OkStatus();
    };
    // With an observer the caller does none of it.
    EXPECT_TRUE(ParallelFor(50, task, [] { return absl::OkStatus(); }).ok());
    return seen;
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(of_tasks(), std::set<int>{before});
    std::set<int> low;
    AtLowPriority([&] { low = of_tasks(); });
    EXPECT_EQ(low, std::set<int>{std::min(before + 10, 19)});
  }
}

TEST(AtLowPriority, ThrowsWhatTheWorkThrows) {
  EXPECT_THROW(AtLowPriority([] { throw std::runtime_error("why"); }), std::runtime_error);
}

}  // namespace
}  // namespace privatemail
