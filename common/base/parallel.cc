#include "common/base/parallel.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "common/base/workers.h"

namespace privatemail {
namespace {

constexpr std::chrono::milliseconds kBetweenObservations{100};

// Kept from one piece of work to the next: an embedding applies its operator in every step, and a
// daemon that builds began hundreds of threads a second. Others for each niceness, which a thread
// has from the one that began it: a build's are not a search's. Never destroyed, because work may
// go on while the program ends. A process that was forked has none of the threads of its parent.
Workers& SharedWorkers() {
  static std::mutex mutex;
  static pid_t owner = 0;
  static std::map<int, std::unique_ptr<Workers>>* workers = nullptr;
  const int niceness = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  const std::lock_guard<std::mutex> guard(mutex);
  if (owner != ::getpid()) {
    workers = new std::map<int, std::unique_ptr<Workers>>;
    owner = ::getpid();
  }
  std::unique_ptr<Workers>& of_niceness = (*workers)[niceness];
  if (of_niceness == nullptr) of_niceness = std::make_unique<Workers>();
  return *of_niceness;
}

// Threads that do the same work. Destruction waits until they are done.
class Helpers {
 public:
  Helpers() = default;
  ~Helpers() {
    for (const std::future<void>& one : done_) {
      if (one.valid()) one.wait();
    }
  }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  // As many of `wanted` as the machine gives.
  void Start(int wanted, const std::function<void()>& work) {
    for (int i = 0; i < wanted; ++i) {
      const auto task = std::make_shared<std::packaged_task<void()>>(work);
      done_.push_back(task->get_future());
      try {
        SharedWorkers().Run([task] { (*task)(); });
      } catch (const std::system_error&) {
        done_.pop_back();
        return;
      }
    }
  }

  const std::vector<std::future<void>>& done() const { return done_; }

  // Waits, and throws what one of them threw.
  void Join() {
    for (std::future<void>& one : done_) one.get();
  }

 private:
  std::vector<std::future<void>> done_;
};

// Those that this thread may run on: a container or taskset may allow fewer than there are.
int Cores(int count) {
  cpu_set_t allowed;
  const bool known = ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  const int cores =
      known ? CPU_COUNT(&allowed) : static_cast<int>(std::thread::hardware_concurrency());
  return std::min(std::max(1, cores), count);
}

// Until all are done; asks meanwhile.
void Observe(const Helpers& helpers, const WorkObserver& observer, SharedWork& shared) {
  for (const std::future<void>& one : helpers.done()) {
    while (one.wait_for(kBetweenObservations) != std::future_status::ready) {
      if (!shared.stopped()) shared.Stop(observer());
    }
  }
}

}  // namespace

void ParallelFor(int count, absl::FunctionRef<void(int)> task) {
  std::atomic<int> next = 0;
  const auto work = [&] {
    for (int i = next++; i < count; i = next++) task(i);
  };
  Helpers helpers;
  helpers.Start(Cores(count) - 1, work);
  work();
  helpers.Join();
}

bool SharedWork::AwaitTurn(int turn) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return turn_ == turn || stopped_; });
  return !stopped_;
}

void SharedWork::PassTurn() {
  const std::lock_guard<std::mutex> guard(mutex_);
  ++turn_;
  changed_.notify_all();
}

void SharedWork::Stop(const absl::Status& status) {
  if (status.ok()) return;
  const std::lock_guard<std::mutex> guard(mutex_);
  if (!stopped_) status_ = status;
  stopped_ = true;
  changed_.notify_all();
}

absl::Status SharedWork::status() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return status_;
}

absl::Status ParallelFor(int count, absl::FunctionRef<absl::Status(int, SharedWork&)> task,
                         const WorkObserver& observer) {
  SharedWork shared;
  std::atomic<int> next = 0;
  const auto work = [&] {
    // Who waits for a turn of a task that threw would wait forever.
    try {
      for (int i = next++; i < count && !shared.stopped(); i = next++) shared.Stop(task(i, shared));
    } catch (...) {
      shared.Stop(absl::InternalError("a task threw"));
      throw;
    }
  };
  if (observer) shared.Stop(observer());
  Helpers helpers;
  helpers.Start(Cores(count) - (observer ? 0 : 1), work);
  if (!observer || helpers.done().empty()) {
    work();
  } else {
    Observe(helpers, observer, shared);
  }
  helpers.Join();
  return shared.status();
}

}  // namespace privatemail
