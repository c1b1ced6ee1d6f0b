#include "server/access/line_budget.h"

#include <utility>

namespace privatemail::server {

LineBudget::Verdict LineBudget::Take(bool has_key, Clock::time_point now) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    written_ = 0;
  }
  if (!has_key && written_ == kLinesPerSecond) {
    ++left_out_;
    return {.write = false};
  }
  if (!has_key) ++written_;
  // Told of when the flood is over or a second has passed, not with every line between.
  return {.write = true, .left_out = written_ <= 1 ? std::exchange(left_out_, 0) : 0};
}

}  // namespace privatemail::server
