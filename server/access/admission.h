// How many calls are worked on at once.
#ifndef PRIVATEMAIL_SERVER_ACCESS_ADMISSION_H_
#define PRIVATEMAIL_SERVER_ACCESS_ADMISSION_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/access/limits.h"

namespace privatemail::server {

// A number of places, and a queue of bounded length and patience before them. First come, first
// served, but for who may not have one more: no key can take all places, and some are kept for
// who administers all collections, and must get in when all others are taken to revoke the key that
// took them.
// Thread-safe.
class Admission {
  struct Entry;

 public:
  struct Caller {
    std::string key;  // id; empty: calls are not counted by key
    bool administers = false;
  };

  // A place, or a turn in the queue; given back on destruction.
  class Ticket {
   public:
    Ticket(Ticket&& other) noexcept;
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket();

    // Whether there is no need to wait.
    bool HasPlace() const;

    // Waits for the place. RESOURCE_EXHAUSTED naming limit and value: the wait was too long.
    // CANCELLED: `gone`, which is asked several times a second, became true.
    absl::Status AwaitPlace(const std::function<bool()>& gone);

   private:
    friend class Admission;
    Ticket(Admission* admission, std::list<Entry>::iterator entry)
        : admission_(admission), entry_(entry) {}

    Admission* admission_;
    std::list<Entry>::iterator entry_;
  };

  explicit Admission(const Limits& limits) : limits_(limits) {}

  // Does not wait. RESOURCE_EXHAUSTED naming limit and value: the queue is full, or the key has as
  // many calls as it may.
  absl::StatusOr<Ticket> Enter(const Caller& caller);

  // Holds for those who wait, too. Fewer places let those at work finish.
  void SetLimits(const Limits& limits);

  int64_t working() const;
  int64_t waiting() const;

 private:
  struct Entry {
    Caller caller;
    std::chrono::steady_clock::time_point since;
    bool working = false;
  };

  void Leave(std::list<Entry>::iterator entry);
  // The following are called with mutex_ held.
  void FillPlaces();
  bool MayWork(const Caller& caller) const;
  absl::Status CheckMayWait(const Caller& caller) const;
  int64_t Count(bool working) const;
  int64_t CountOfKey(const std::string& key, bool working) const;

  mutable std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  Limits limits_;
  std::list<Entry> entries_;  // at work or waiting, by arrival
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_ADMISSION_H_
