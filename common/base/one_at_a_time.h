// Work that one caller does at a time, for which the others need not wait for ever.
#ifndef PRIVATEMAIL_COMMON_BASE_ONE_AT_A_TIME_H_
#define PRIVATEMAIL_COMMON_BASE_ONE_AT_A_TIME_H_

#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"

namespace privatemail {

// Like a mutex that is had in the order in which it was asked for, and whose waiting can be given
// up. (std::timed_mutex is one as well, but the thread
// sanitizer of GCC 12 does not see it locked.) Thread-safe.
class OneAtATime {
 public:
  // Until it is destroyed nobody else has a turn.
  class Turn {
   public:
    explicit Turn(OneAtATime* of) : of_(of) {}
    Turn(Turn&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (of_ != nullptr) of_->End();
    }

   private:
    OneAtATime* of_;
  };

  // Waits for the turn, behind those who wait already. Nothing: `given_up`, which is asked before
  // and every 50 ms while the caller waits, was true.
  std::optional<Turn> Wait(absl::FunctionRef<bool()> given_up);

 private:
  void End();
  void WakeFirst();  // under mutex_

  std::mutex mutex_;
  std::list<std::condition_variable> waiting_;  // one for each caller, who came first in front
  bool taken_ = false;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_ONE_AT_A_TIME_H_
