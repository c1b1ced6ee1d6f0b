// A background queue, and work at low priority.
#ifndef PRIVATEMAIL_COMMON_BASE_BACKGROUND_QUEUE_H_
#define PRIVATEMAIL_COMMON_BASE_BACKGROUND_QUEUE_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/functional/function_ref.h"

namespace privatemail {

// Adds 10 to the niceness of the calling thread and of threads that it starts later: about a tenth
// of the processor time of a normal thread under load. Cannot be undone.
void LowerThreadPriority();

// Runs `work` on a new thread of lower priority, waits for it and rethrows its exception. If the
// system refuses a thread, `work` runs on the caller's.
void RunAtLowPriority(absl::FunctionRef<void()> work);

// Runs low-priority background jobs in order, one at a time. Thread-safe.
class BackgroundQueue {
 public:
  // Returns early, within seconds, when `stopped` becomes true. Must not throw.
  using Job = std::function<void(const std::atomic<bool>& stopped)>;

  BackgroundQueue() : thread_([this] { Run(); }) {}
  ~BackgroundQueue();  // stops the running job and drops the waiting ones

  void Add(Job job);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;  // last: it uses the other members
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_BACKGROUND_QUEUE_H_
