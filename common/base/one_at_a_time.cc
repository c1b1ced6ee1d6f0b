#include "common/base/one_at_a_time.h"

#include <chrono>

namespace privatemail {

std::optional<OneAtATime::Turn> OneAtATime::Wait(absl::FunctionRef<bool()> given_up) {
  constexpr std::chrono::milliseconds kLookAgain{50};
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    if (given_up()) return std::nullopt;
    if (!taken_) break;
    ended_.wait_for(lock, kLookAgain);
  }
  taken_ = true;
  return Turn(this);
}

void OneAtATime::End() {
  const std::lock_guard<std::mutex> guard(mutex_);
  taken_ = false;
  ended_.notify_one();
}

}  // namespace privatemail
