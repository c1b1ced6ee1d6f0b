// A fair mutex whose waiters can be cancelled.
#ifndef PRIVATEMAIL_COMMON_BASE_CANCELLABLE_MUTEX_H_
#define PRIVATEMAIL_COMMON_BASE_CANCELLABLE_MUTEX_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace privatemail {

// Owners take turns; callers of one owner are served in order of arrival. (GCC 12's thread
// sanitizer does not see std::timed_mutex locked.) Thread-safe.
class CancellableMutex {
  struct Waiter {
    std::condition_variable changed = {};
    std::string owner;
  };

 public:
  // Holds the mutex until it is destroyed.
  class Lock {
   public:
    explicit Lock(CancellableMutex* mutex) : mutex_(mutex) {}
    Lock(Lock&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Lock& operator=(Lock&&) = delete;
    ~Lock() {
      if (mutex_ != nullptr) mutex_->Unlock();
    }

   private:
    CancellableMutex* mutex_;
  };

  // Empty if `cancelled`, polled first and every 50 ms, returned true.
  std::optional<Lock> Acquire(absl::FunctionRef<bool()> cancelled, absl::string_view owner = "") {
    constexpr std::chrono::milliseconds kPollInterval{50};
    std::unique_lock<std::mutex> lock(mutex_);
    const auto place = waiting_.emplace(waiting_.end());
    place->owner = std::string(owner);
    const absl::Cleanup leave = [&] {
      waiting_.erase(place);
      WakeNext();
    };
    while (true) {
      if (cancelled()) return std::nullopt;
      if (!locked_ && place == Next()) break;
      place->changed.wait_for(lock, kPollInterval);
    }
    locked_ = true;
    last_turn_[place->owner] = ++turns_;
    return Lock(this);
  }

 private:
  void Unlock() {
    const std::lock_guard<std::mutex> guard(mutex_);
    locked_ = false;
    if (waiting_.empty()) last_turn_.clear();
    WakeNext();
  }

  // The following require mutex_.
  void WakeNext() {
    if (!locked_ && !waiting_.empty()) Next()->changed.notify_one();
  }

  // The first waiter of the owner whose last turn is longest ago.
  std::list<Waiter>::iterator Next() {
    return std::min_element(
        waiting_.begin(), waiting_.end(),
        [&](const Waiter& a, const Waiter& b) { return LastTurn(a) < LastTurn(b); });
  }

  uint64_t LastTurn(const Waiter& waiter) const {
    const auto found = last_turn_.find(waiter.owner);
    return found == last_turn_.end() ? 0 : found->second;
  }

  std::mutex mutex_;           // guards the following
  std::list<Waiter> waiting_;  // in order of arrival
  bool locked_ = false;
  uint64_t turns_ = 0;
  std::map<std::string, uint64_t> last_turn_;  // by owner; forgotten when nobody waits
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_CANCELLABLE_MUTEX_H_
