#include "common/base/one_at_a_time.h"

#include <chrono>

#include "absl/cleanup/cleanup.h"

namespace privatemail {

std::optional<OneAtATime::Turn> OneAtATime::Wait(absl::FunctionRef<bool()> given_up) {
  constexpr std::chrono::milliseconds kLookAgain{50};
  std::unique_lock<std::mutex> lock(mutex_);
  const auto place = waiting_.emplace(waiting_.end());
  const absl::Cleanup leave = [&] {
    waiting_.erase(place);
    WakeFirst();
  };
  while (true) {
    if (given_up()) return std::nullopt;
    if (!taken_ && place == waiting_.begin()) break;
    place->wait_for(lock, kLookAgain);
  }
  taken_ = true;
  return Turn(this);
}

void OneAtATime::End() {
  const std::lock_guard<std::mutex> guard(mutex_);
  taken_ = false;
  WakeFirst();
}

void OneAtATime::WakeFirst() {
  if (!taken_ && !waiting_.empty()) waiting_.front().notify_one();
}

}  // namespace privatemail
