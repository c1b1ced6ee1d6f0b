#include "common/base/background_queue.h"

#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <system_error>
#include <utility>

namespace privatemail {
namespace {

constexpr int kNicenessIncrement = 10;

}  // namespace

void LowerThreadPriority() {
  const auto self = static_cast<id_t>(::gettid());  // on Linux every thread has a niceness
  // A failure is ignored: it makes other threads slower, never wrong.
  ::setpriority(PRIO_PROCESS, self, ::getpriority(PRIO_PROCESS, self) + kNicenessIncrement);
}

void RunAtLowPriority(absl::FunctionRef<void()> work) {
  std::exception_ptr thrown;
  std::thread thread;
  try {
    thread = std::thread([&] {
      LowerThreadPriority();
      try {
        work();
      } catch (...) {
        thrown = std::current_exception();
      }
    });
  } catch (const std::system_error&) {
    return work();
  }
  thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

BackgroundQueue::~BackgroundQueue() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundQueue::Add(Job job) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    waiting_.push_back(std::move(job));
  }
  changed_.notify_all();
}

void BackgroundQueue::Run() {
  LowerThreadPriority();
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    const Job next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    next(stopped_);
    lock.lock();
  }
}

}  // namespace privatemail
