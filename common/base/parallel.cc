#include "common/base/parallel.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <system_error>
#include <thread>
#include <vector>

namespace privatemail {
namespace {

constexpr std::chrono::milliseconds kBetweenObservations{100};

// As many of `wanted` threads as the machine gives.
std::vector<std::future<void>> Start(int wanted, const std::function<void()>& work) {
  std::vector<std::future<void>> threads;
  for (int i = 0; i < wanted; ++i) {
    try {
      threads.push_back(std::async(std::launch::async, work));
    } catch (const std::system_error&) {
      break;
    }
  }
  return threads;
}

int Cores(int count) {
  return std::min(std::max(1, static_cast<int>(std::thread::hardware_concurrency())), count);
}

// Until all are done; asks meanwhile.
void Observe(const std::vector<std::future<void>>& threads, const WorkObserver& observer,
             SharedWork& shared) {
  for (const std::future<void>& thread : threads) {
    while (thread.wait_for(kBetweenObservations) != std::future_status::ready) {
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
  std::vector<std::future<void>> others = Start(Cores(count) - 1, work);
  // The futures' destructors wait for the others, also when this thread's share throws.
  work();
  for (auto& other : others) other.get();
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
  std::vector<std::future<void>> others = Start(Cores(count) - (observer ? 0 : 1), work);
  if (!observer || others.empty()) {
    work();
  } else {
    Observe(others, observer, shared);
  }
  for (auto& other : others) other.get();
  return shared.status();
}

}  // namespace privatemail
