#include "server/engine/later_work.h"

#include <utility>

#include "common/base/low_priority.h"

namespace privatemail::server {

LaterWork::~LaterWork() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LaterWork::Add(Task task) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    waiting_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void LaterWork::Run() {
  LowerPriority();
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    const Task next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    next(stopped_);
    lock.lock();
  }
}

}  // namespace privatemail::server
