#include "common/base/background_queue.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <optional>
#include <system_error>
#include <utility>

#include "common/base/cancellation.h"
#include "common/base/stopwatch.h"

namespace privatemail {
namespace {

constexpr int kNicenessIncrement = 10;
constexpr absl::Duration kStoringTime = absl::Seconds(1);

// Applies to the calling thread and to threads that it starts later. Cannot be undone.
void LowerThreadPriority() {
  const auto self = static_cast<id_t>(::gettid());  // on Linux every thread has a niceness
  // A failure is ignored: it makes other threads slower, never wrong.
  ::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + kNicenessIncrement);
}

}  // namespace

void RunAtLowPriority(absl::FunctionRef<void()> work) {
  std::future<void> done;
  const CancelledFunction cancelled = CancellationScope::Innermost();
  try {
    done = std::async(std::launch::async, [&] {
      const CancellationScope scope(cancelled);
      LowerThreadPriority();
      work();
    });
  } catch (const std::system_error&) {
    return work();
  }
  done.get();
}

BackgroundQueue::~BackgroundQueue() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundQueue::Add(Job job, absl::Duration delay, uint64_t rank) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    waiting_.push_back({std::move(job), Clock::now() + absl::ToChronoNanoseconds(delay), rank});
  }
  changed_.notify_all();
}

void BackgroundQueue::Run(Priority priority) {
  if (priority == Priority::kLow) LowerThreadPriority();
  // A job that has its result may still store it.
  const CancellationScope scope([this, since_stop = std::optional<Stopwatch>()]() mutable {
    if (!stopped_) return false;
    if (!since_stop.has_value()) since_stop.emplace();
    return since_stop->Elapsed() > kStoringTime;
  });
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_) {
    const Clock::time_point now = Clock::now();
    const auto next =
        std::min_element(waiting_.begin(), waiting_.end(), [&](const auto& a, const auto& b) {
          return std::pair(std::max(a.due, now), a.rank) < std::pair(std::max(b.due, now), b.rank);
        });
    if (next == waiting_.end()) {
      changed_.wait(lock);
    } else if (next->due > now) {
      const Clock::time_point due = next->due;  // Add may move the jobs while this waits
      changed_.wait_until(lock, due);
    } else {
      Job job = std::move(next->job);
      waiting_.erase(next);
      lock.unlock();
      job(stopped_);
      job = nullptr;  // what it holds is destroyed without the lock
      lock.lock();
    }
  }
}

}  // namespace privatemail
