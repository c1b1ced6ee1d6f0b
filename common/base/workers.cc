#include "common/base/workers.h"

#include <system_error>
#include <utility>

namespace privatemail {

Workers::~Workers() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::Run(std::function<void()> work) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (idle_ <= waiting_.size()) AddThread();
  waiting_.push_back(std::move(work));
  changed_.notify_one();
}

void Workers::AddThread() {
  threads_.reserve(threads_.size() + 1);
  try {
    threads_.emplace_back([this] { Work(); });
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;
  }
}

void Workers::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // what it holds must not live until the next
    lock.lock();
  }
}

}  // namespace privatemail
