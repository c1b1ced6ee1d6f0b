// How many calls are worked on at once.
#ifndef PRIVATEMAIL_SERVER_ACCESS_ADMISSION_H_
#define PRIVATEMAIL_SERVER_ACCESS_ADMISSION_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/access/limits.h"

namespace privatemail {

// A number of places, and a queue of bounded length and patience before them: first come, first
// served. Thread-safe.
class Admission {
 public:
  // One place, given back on destruction.
  class Place {
   public:
    explicit Place(Admission* admission) : admission_(admission) {}
    Place(Place&& other) noexcept : admission_(std::exchange(other.admission_, nullptr)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (admission_ != nullptr) admission_->Leave();
    }

   private:
    Admission* admission_;
  };

  explicit Admission(const Limits& limits) : limits_(limits) {}

  // Waits for a place. RESOURCE_EXHAUSTED naming limit and value: the queue is full, or the wait
  // was too long. CANCELLED: `gone`, which is asked several times a second, became true.
  absl::StatusOr<Place> Enter(const std::function<bool()>& gone);

  // Holds for those who wait, too. Fewer places let those at work finish.
  void SetLimits(const Limits& limits);

  int64_t working() const;
  int64_t waiting() const;

 private:
  void Leave();
  absl::Status Wait(std::unique_lock<std::mutex>* lock, const std::function<bool()>& gone);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Limits limits_;
  int64_t working_ = 0;
  std::deque<const void*> queue_;  // who waits, by the address of something of theirs
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_ACCESS_ADMISSION_H_
