// A thread pool, and parallel loops that run on it.
#ifndef PRIVATEMAIL_COMMON_BASE_THREAD_POOL_H_
#define PRIVATEMAIL_COMMON_BASE_THREAD_POOL_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace privatemail {

// A cached thread pool: it has as many threads as jobs ever ran at once and reuses idle ones. It
// sets no limit; the caller bounds the number of concurrent jobs. Thread-safe.
class ThreadPool {
 public:
  ThreadPool() = default;
  // Waits for all jobs, including those that have not started.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Starts the job at once, or, if the system refuses another thread, when a running job ends.
  // Throws std::system_error, and drops the job, if the pool cannot start its first thread.
  void Run(std::function<void()> job);

 private:
  void RunJobs();

  std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool stopping_ = false;
};

// Runs task(0) .. task(count - 1), each once, and returns when all are done.
//   threads:     the caller's and one for each further core that the caller may run on; fewer when
//                the system refuses threads. All have the caller's niceness.
//   order:       tasks start in ascending order and end in any. A task must write only its own
//                results, so that they do not depend on the number of cores.
//   exceptions:  after an exception no further task starts; it is rethrown here.
void ParallelFor(int count, absl::FunctionRef<void(int)> task);

// State shared by the tasks of one ParallelFor. Thread-safe.
class TaskGroup {
 public:
  // True after a task failed or the observer stopped the loop. Long tasks poll it.
  bool stopped() const { return stopped_; }

  // Runs the section of this task after that of task `task` - 1, or not at all if the loop is
  // stopped. Every task calls it once.
  void RunInOrder(int task, absl::FunctionRef<void()> section);

  // Stops the loop unless `status` is OK. The first error is kept.
  void Stop(const absl::Status& status);
  absl::Status status() const;

 private:
  std::atomic<bool> stopped_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int next_ordered_ = 0;
  absl::Status status_;
};

// Polled while a loop runs; an error stops the loop.
using WorkObserver = std::function<absl::Status()>;

// ParallelFor over tasks that can fail. Returns the first error of a task or of the observer, after
// which no further task starts. With an observer the caller's thread runs no task: it polls the
// observer at once and then ten times a second, so that the observer need not be thread-safe.
absl::Status ParallelFor(int count, absl::FunctionRef<absl::Status(int, TaskGroup&)> task,
                         const WorkObserver& observer);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_THREAD_POOL_H_
