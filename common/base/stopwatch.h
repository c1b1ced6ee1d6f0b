// A stopwatch for durations, deadlines and pauses.
#ifndef PRIVATEMAIL_COMMON_BASE_STOPWATCH_H_
#define PRIVATEMAIL_COMMON_BASE_STOPWATCH_H_

#include <chrono>

#include "absl/time/time.h"

namespace privatemail {

// Runs from its construction on a clock that nobody sets. absl::Now() may jump by hours.
class Stopwatch {
 public:
  absl::Duration Elapsed() const {
    return absl::FromChrono(std::chrono::steady_clock::now() - start_);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_STOPWATCH_H_
