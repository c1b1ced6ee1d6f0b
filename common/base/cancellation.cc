#include "common/base/cancellation.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace privatemail {

absl::Status SleepUnlessCancelled(absl::Duration duration, const CancelledFunction& cancelled) {
  const absl::Time end = absl::Now() + duration;
  for (absl::Duration left = duration; left > absl::ZeroDuration(); left = end - absl::Now()) {
    PM_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
    absl::SleepFor(std::min(left, absl::Milliseconds(50)));
  }
  return absl::OkStatus();
}

}  // namespace privatemail
