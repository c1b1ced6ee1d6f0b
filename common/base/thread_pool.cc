#include "common/base/thread_pool.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

namespace privatemail {
namespace {

constexpr std::chrono::milliseconds kObserverInterval{100};

// Pools persist between loops: an embedding multiplies in every step, which would otherwise start
// hundreds of threads a second. One pool for each niceness, which threads inherit from the one that
// starts them. Never destroyed (jobs may run at exit); a forked child has no thread of its parent.
ThreadPool& SharedPool() {
  static std::mutex mutex;
  static pid_t owner = 0;
  static std::map<int, std::unique_ptr<ThreadPool>>* pools = nullptr;
  const int niceness = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  const std::lock_guard<std::mutex> guard(mutex);
  if (owner != ::getpid()) {
    pools = new std::map<int, std::unique_ptr<ThreadPool>>;
    owner = ::getpid();
  }
  std::unique_ptr<ThreadPool>& pool = (*pools)[niceness];
  if (pool == nullptr) pool = std::make_unique<ThreadPool>();
  return *pool;
}

// Jobs of one loop on the shared pool. Destruction waits until they are done.
class LoopJobs {
 public:
  LoopJobs() = default;
  ~LoopJobs() {
    for (const std::future<void>& job : done_) {
      if (job.valid()) job.wait();
    }
  }
  LoopJobs(const LoopJobs&) = delete;
  LoopJobs& operator=(const LoopJobs&) = delete;

  // Starts at most `count`: fewer if the system refuses threads.
  void Start(int count, const std::function<void()>& work) {
    for (int i = 0; i < count; ++i) {
      const auto job = std::make_shared<std::packaged_task<void()>>(work);
      done_.push_back(job->get_future());
      try {
        SharedPool().Run([job] { (*job)(); });
      } catch (const std::system_error&) {
        done_.pop_back();
        return;
      }
    }
  }

  const std::vector<std::future<void>>& done() const { return done_; }

  // Waits for all and rethrows an exception of a job.
  void Join() {
    for (std::future<void>& job : done_) job.get();
  }

 private:
  std::vector<std::future<void>> done_;
};

// A container or taskset may allow fewer cores than the machine has.
int UsableCores(int max) {
  cpu_set_t allowed;
  const bool known = ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  const int cores =
      known ? CPU_COUNT(&allowed) : static_cast<int>(std::thread::hardware_concurrency());
  return std::min(std::max(1, cores), max);
}

void PollUntilDone(const LoopJobs& jobs, const WorkObserver& observer, TaskGroup& group) {
  for (const std::future<void>& job : jobs.done()) {
    while (job.wait_for(kObserverInterval) != std::future_status::ready) {
      if (!group.stopped()) group.Stop(observer());
    }
  }
}

}  // namespace

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::Run(std::function<void()> job) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (idle_ <= waiting_.size()) {
    threads_.reserve(threads_.size() + 1);
    try {
      threads_.emplace_back([this] { RunJobs(); });
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;
    }
  }
  waiting_.push_back(std::move(job));
  changed_.notify_one();
}

void ThreadPool::RunJobs() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    std::function<void()> job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job();
    job = nullptr;  // its captures must not outlive it
    lock.lock();
  }
}

void ParallelFor(int count, absl::FunctionRef<void(int)> task) {
  const auto run = [&](int i, TaskGroup&) {
    task(i);
    return absl::OkStatus();
  };
  ParallelFor(count, run, /*observer=*/nullptr).IgnoreError();  // no task can return one
}

void TaskGroup::RunInOrder(int task, absl::FunctionRef<void()> section) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return next_ordered_ == task || stopped_; });
  if (stopped_) return;
  lock.unlock();
  section();
  lock.lock();
  ++next_ordered_;
  changed_.notify_all();
}

void TaskGroup::Stop(const absl::Status& status) {
  if (status.ok()) return;
  const std::lock_guard<std::mutex> guard(mutex_);
  if (!stopped_) status_ = status;
  stopped_ = true;
  changed_.notify_all();
}

absl::Status TaskGroup::status() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return status_;
}

absl::Status ParallelFor(int count, absl::FunctionRef<absl::Status(int, TaskGroup&)> task,
                         const WorkObserver& observer) {
  TaskGroup group;
  std::atomic<int> next = 0;
  const auto work = [&] {
    // Without Stop, tasks in RunInOrder would wait forever for one that threw.
    try {
      for (int i = next++; i < count && !group.stopped(); i = next++) group.Stop(task(i, group));
    } catch (...) {
      group.Stop(absl::InternalError("a task threw"));
      throw;
    }
  };
  if (observer) group.Stop(observer());
  LoopJobs jobs;
  jobs.Start(UsableCores(count) - (observer ? 0 : 1), work);
  if (!observer || jobs.done().empty()) {
    work();
  } else {
    PollUntilDone(jobs, observer, group);
  }
  jobs.Join();
  return group.status();
}

}  // namespace privatemail
