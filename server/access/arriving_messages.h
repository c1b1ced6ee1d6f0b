// A bound for messages that are on their way.
#ifndef PRIVATEMAIL_SERVER_ACCESS_ARRIVING_MESSAGES_H_
#define PRIVATEMAIL_SERVER_ACCESS_ARRIVING_MESSAGES_H_

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "server/access/limits.h"

namespace privatemail::server {

// A counting semaphore whose waiters hold no thread. gRPC takes the memory of a message of up to
// max_message_bytes while its bytes arrive; beyond max_transport_memory it resets calls of any
// caller. So only as many calls may read at once as have room for the longest messages. A free
// place goes to the key that has fewest, of several to the call that waits longest; no key has more
// than half of the places, and one of four or more is for operators alone, so that they can revoke
// a key. Thread-safe; outlives its places.
class ArrivingMessages {
  struct Waiting;

 public:
  // As many places as fit into three quarters of max_transport_memory, but at least 2. The rest is
  // for what has no place: probes, and the first bytes of calls that wait.
  explicit ArrivingMessages(const Limits& limits);

  // The place of one message, or its position in the queue; left on destruction.
  class Place {
   public:
    explicit Place(ArrivingMessages* messages) : messages_(messages) {}
    ~Place() { Leave(); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // Calls `start` at once, or on the thread of the call that makes room; that may destroy the
    // place. key: the id of the caller's key; empty where keys are off: then it has no share.
    void Enter(const std::string& key, bool is_operator, std::function<void()> start);
    // For a caller that is gone, so that nothing will arrive: if the call waits, calls `start`
    // without a place.
    void StopWaiting();
    void Leave();

    // Whether a call of another key waits that has fewer places.
    bool KeepsOthersWaiting() const;

   private:
    friend class ArrivingMessages;
    enum class State { kOutside, kWaiting, kTaken };

    ArrivingMessages* const messages_;
    // The following are guarded by the mutex of messages_.
    State state_ = State::kOutside;
    std::string key_;
    bool is_operator_ = false;
    std::list<Waiting>::iterator entry_;  // while it waits
  };

 private:
  struct Waiting {
    Place* place;
    std::function<void()> start;
  };

  // The following are called with mutex_ held.
  bool HasRoom(const Place& place) const;
  void Admit(Place* place);
  // Returns what the calls that have a place now wait for; to be called without mutex_.
  std::vector<std::function<void()>> GiveBack(const std::string& key);

  const int64_t most_;
  mutable std::mutex mutex_;    // guards the following
  KeyShares taken_;             // places
  std::list<Waiting> waiting_;  // in order of arrival
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_ARRIVING_MESSAGES_H_
