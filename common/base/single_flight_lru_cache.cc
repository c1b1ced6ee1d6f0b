#include "common/base/single_flight_lru_cache.h"

#include <chrono>

#include "absl/cleanup/cleanup.h"

namespace privatemail {

std::optional<CancellableMutex::Lock> CancellableMutex::Acquire(
    absl::FunctionRef<bool()> cancelled) {
  constexpr std::chrono::milliseconds kPollInterval{50};
  std::unique_lock<std::mutex> lock(mutex_);
  const auto place = waiting_.emplace(waiting_.end());
  const absl::Cleanup leave = [&] {
    waiting_.erase(place);
    WakeFirst();
  };
  while (true) {
    if (cancelled()) return std::nullopt;
    if (!locked_ && place == waiting_.begin()) break;
    place->wait_for(lock, kPollInterval);
  }
  locked_ = true;
  return Lock(this);
}

void CancellableMutex::Unlock() {
  const std::lock_guard<std::mutex> guard(mutex_);
  locked_ = false;
  WakeFirst();
}

void CancellableMutex::WakeFirst() {
  if (!locked_ && !waiting_.empty()) waiting_.front().notify_one();
}

}  // namespace privatemail
