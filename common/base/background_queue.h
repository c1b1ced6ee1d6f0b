// A background queue, and work at low priority.
#ifndef PRIVATEMAIL_COMMON_BASE_BACKGROUND_QUEUE_H_
#define PRIVATEMAIL_COMMON_BASE_BACKGROUND_QUEUE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace privatemail {

// Runs `work` on a new thread whose niceness is higher by 10 (about a tenth of the processor time
// of a normal thread under load), waits for it and rethrows its exception. If the system refuses a
// thread, `work` runs on the caller's.
void RunAtLowPriority(absl::FunctionRef<void()> work);

// Runs background jobs one at a time on a thread of its own. Thread-safe.
class BackgroundQueue {
 public:
  // Returns early, within seconds, when `stopped` becomes true. Must not throw. May add jobs.
  using Job = std::function<void(const std::atomic<bool>& stopped)>;
  enum class Priority { kLow, kNormal };

  explicit BackgroundQueue(Priority priority = Priority::kLow)
      : thread_([this, priority] { Run(priority); }) {}
  ~BackgroundQueue();  // stops the running job and drops the waiting ones

  // Adds a job that runs after the delay. The job with the lowest rank runs next, and of equal
  // ranks the one that was added first.
  void Add(Job job, absl::Duration delay = absl::ZeroDuration(), uint64_t rank = 0);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    Job job;
    Clock::time_point due;
    uint64_t rank = 0;
  };
  void Run(Priority priority);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiting> waiting_;  // as they were added
  std::atomic<bool> stopped_ = false;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_BACKGROUND_QUEUE_H_
