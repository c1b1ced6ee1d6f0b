#include "server/engine/index_maker.h"

#include <utility>

#include "common/base/low_priority.h"

namespace privatemail {

IndexMaker::~IndexMaker() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void IndexMaker::Add(const std::shared_ptr<const Retriever>& retriever) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    waiting_.push_back(retriever);
  }
  changed_.notify_all();
}

void IndexMaker::Run() {
  LowerPriority();
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    const std::weak_ptr<const Retriever> next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    if (const std::shared_ptr<const Retriever> retriever = next.lock()) {
      retriever->MakeApproximateIndex(&stopped_);
    }
    lock.lock();
  }
}

}  // namespace privatemail
