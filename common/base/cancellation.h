// Cancellation of computations whose result nobody waits for.
#ifndef PRIVATEMAIL_COMMON_BASE_CANCELLATION_H_
#define PRIVATEMAIL_COMMON_BASE_CANCELLATION_H_

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/stopwatch.h"

namespace privatemail {

// Whether the call was cancelled; computations poll it many times a second. Empty: never.
using CancelledFunction = std::function<bool()>;

inline absl::Status CheckNotCancelled(const CancelledFunction& cancelled) {
  if (!cancelled || !cancelled()) return absl::OkStatus();
  return absl::CancelledError("the caller no longer waits for an answer");
}

// Cancels the waits of its thread that take no CancelledFunction, which are those for a database:
// they poll the innermost scope of the thread that they run on. RunAtLowPriority hands the scope of
// its caller to its thread.
class CancellationScope {
 public:
  explicit CancellationScope(CancelledFunction cancelled)
      : cancelled_(std::move(cancelled)), outer_(std::exchange(innermost_, &cancelled_)) {}
  ~CancellationScope() { innermost_ = outer_; }
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

  // The function of the innermost scope of this thread, valid as long as the scope; empty without
  // one.
  static CancelledFunction Innermost() {
    return innermost_ == nullptr || !*innermost_ ? nullptr
                                                 : CancelledFunction(std::cref(*innermost_));
  }

 private:
  static inline thread_local const CancelledFunction* innermost_ = nullptr;

  const CancelledFunction cancelled_;
  const CancelledFunction* const outer_;
};

// CANCELLED if the innermost scope of this thread is cancelled.
inline absl::Status CheckThreadNotCancelled() {
  return CheckNotCancelled(CancellationScope::Innermost());
}

// For background jobs, which end with their queue.
inline absl::Status CheckNotStopped(const std::atomic<bool>& stopped) {
  return stopped ? absl::CancelledError("the job was stopped") : absl::OkStatus();
}

// Waits. Returns CANCELLED soon after the call was cancelled.
inline absl::Status SleepUnlessCancelled(absl::Duration duration,
                                         const CancelledFunction& cancelled) {
  const Stopwatch waited;
  for (absl::Duration left = duration; left > absl::ZeroDuration();
       left = duration - waited.Elapsed()) {
    PM_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
    absl::SleepFor(std::min(left, absl::Milliseconds(50)));
  }
  return absl::OkStatus();
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_CANCELLATION_H_
