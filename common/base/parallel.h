// Work shared out over the machine's cores.
#ifndef PRIVATEMAIL_COMMON_BASE_PARALLEL_H_
#define PRIVATEMAIL_COMMON_BASE_PARALLEL_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace privatemail {

// Runs task(0) .. task(count - 1), each once, on as many threads as there are cores that it may run
// on, the caller's among them, and returns when all are done. Tasks begin in ascending order and
// end in any: a task writes only what is its own, so that results do not depend on the number of
// cores. What a task throws is thrown here. A machine that refuses more threads makes it slower,
// never wrong. All threads have the caller's niceness.
void ParallelFor(int count, absl::FunctionRef<void(int)> task);

// What the tasks of one piece of work have in common. Thread-safe.
class SharedWork {
 public:
  // Whether a task failed or somebody wants the work to end. Long tasks look now and then.
  bool stopped() const { return stopped_; }

  // Waits until `turn` calls of PassTurn have been made; false when the work was stopped meanwhile.
  // As tasks begin in ascending order, task i may wait for turn i and pass it: what it does
  // between the two, the tasks do in order.
  bool AwaitTurn(int turn);
  void PassTurn();

  // The first status that is not OK stops the work and is what remains.
  void Stop(const absl::Status& status);
  absl::Status status() const;

 private:
  std::atomic<bool> stopped_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = 0;
  absl::Status status_;
};

// Tells whether the work should go on: a status that is not OK stops it.
using WorkObserver = std::function<absl::Status()>;

// The same for tasks that may fail and work that may be stopped: after the first status that is not
// OK, a task's or the observer's, no further task begins, and that status is returned. With an
// observer the caller's thread does no task: it asks the observer at once and then ten times a
// second, so that the observer need not be thread-safe and long tasks do not keep it waiting.
absl::Status ParallelFor(int count, absl::FunctionRef<absl::Status(int, SharedWork&)> task,
                         const WorkObserver& observer);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_PARALLEL_H_
