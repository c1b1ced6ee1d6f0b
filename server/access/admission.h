// Admission control of calls.
#ifndef PRIVATEMAIL_SERVER_ACCESS_ADMISSION_H_
#define PRIVATEMAIL_SERVER_ACCESS_ADMISSION_H_

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

// A fair counting semaphore with a bounded queue and a timeout. Thread-safe.
//   - Served in order of arrival, except for callers at a limit of their own.
//   - No key can take more than half of the places, and of those for the store, except that of an
//     operator.
//   - Calls that wait for the store take at most half of the places and of the queue, so that a
//     store that hangs leaves the other half to searches.
//   - Some places are reserved for operators, so that they can revoke a key that took the others.
class Admission {
  struct Entry;

 public:
  struct Caller {
    std::string key;           // id; empty: not counted by key
    bool is_operator = false;  // has the scope admin for all collections
    bool uses_store = false;   // waits for the store
  };

  // A place or a position in the queue; released on destruction.
  class Ticket {
   public:
    Ticket(Ticket&& other) noexcept;
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket();

    bool IsAdmitted() const;

    // Whether it waits because other keys have taken the places, not for its own maximum.
    bool WaitsForOthers() const;

    // Waits until the call is admitted. RESOURCE_EXHAUSTED: queue_seconds have passed in which this
    // process ran; a stopped machine is not the fault of those who wait. CANCELLED: `cancelled`,
    // polled ten times a second without a lock, returned true.
    absl::Status Await(const std::function<bool()>& cancelled);

   private:
    friend class Admission;
    Ticket(Admission* admission, std::list<Entry>::iterator entry)
        : admission_(admission), entry_(entry) {}

    Admission* admission_;
    std::list<Entry>::iterator entry_;
  };

  explicit Admission(const Limits& limits) : limits_(limits) {}

  // Does not wait. RESOURCE_EXHAUSTED naming limit and value: the queue is full, or the key has its
  // maximum of waiting calls.
  absl::StatusOr<Ticket> Enter(const Caller& caller);

  // Applies to waiting calls too. Running calls beyond a lower limit finish.
  void SetLimits(const Limits& limits);

  int64_t running() const { return Total(true); }
  int64_t waiting() const { return Total(false); }

 private:
  struct Entry {
    Caller caller;
    bool running = false;
  };

  void Leave(std::list<Entry>::iterator entry);
  // The following are called with mutex_ held.
  void AdmitWaiting();
  bool CanRun(const Caller& caller) const;
  // Whether one more call can run, or wait, without exceeding the share of the caller's key.
  bool KeyMayTakeMore(const Caller& caller, bool running) const;
  // The same for the share of calls that use the store.
  bool StoreMayTakeMore(const Caller& caller, bool running) const;
  absl::Status CheckCanWait(const Caller& caller) const;
  // Adds `change` to the counts of calls in the entry's state.
  void Count(const Entry& entry, int64_t change);

  int64_t Total(bool running) const;  // locks mutex_

  mutable std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  Limits limits_;
  std::list<Entry> entries_;  // running and waiting, in order of arrival
  KeyShares calls_[2];        // waiting, running
  KeyShares store_calls_[2];  // those of them that use the store
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_ADMISSION_H_
