// Connections of callers, and the limits on what they may cost.
#ifndef PRIVATEMAIL_SERVER_ACCESS_CONNECTIONS_H_
#define PRIVATEMAIL_SERVER_ACCESS_CONNECTIONS_H_

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/access/access_key.h"

namespace privatemail::server {

// Ends connections that cost too much. gRPC bounds neither the calls that a connection begins and
// resets nor the bytes of an unfinished header, and keeps memory for each.
//
// Before its first call with a valid key a connection is unauthenticated and takes a slot. Calls
// arrive with the number of the slot's listener, not with their socket, so each slot has one such
// connection at a time. Those of trusted proxies mix callers, one after the other: they have slots
// of their own, no limit by address, and the key of the last call. Thread-safe.
class Connections {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    int64_t max_connections = 4096;  // authenticated ones
    // Whether a key, by its id (empty: a proxy's last call had none), may still be used; called
    // while the object is locked. Its connections end `seconds` after it may not.
    std::function<bool(const std::string&)> is_valid = [](const std::string&) { return true; };
    // Received by all connections together, but part of no complete message: unfinished headers
    // and messages.
    int64_t max_unread_bytes = int64_t{1} << 29;
    // Received by one connection while nothing was sent to it. gRPC copies an unfinished header
    // whenever a part arrives, so that long ones take a core; unlike messages they need no window
    // updates.
    int64_t max_unanswered_bytes = 1 << 19;
    // Besides, for each of up to kParallelMessages calls that ran since something was sent, or up
    // to kRestOfMessage before: gRPC grants the end of a message at once.
    int64_t max_unanswered_bytes_of_call = 3 << 19;
    // Calls that were begun and neither answered nor forgotten (kForgottenCallsPerSecond).
    int64_t max_unfinished_calls = 200;  // of one connection
    int64_t max_all_unfinished_calls = 4000;
    // Of unauthenticated connections.
    size_t slots = 64;             // connections of all addresses
    int64_t max_per_address = 16;  // at once
    double seconds = 10;           // to the first call with a valid key
    int64_t max_bytes = 1 << 20;   // received: a first message with a wrong key, and its refusal
    int64_t max_calls = 100;
    std::set<std::string> trusted_proxies;  // addresses: 4 or 16 bytes
    // gRPC copies an entry for each slot whenever a connection begins: few are faster than many.
    size_t proxy_slots = 64;
  };
  // An address is refused while its failures are kFailureBurst or more; at most twice as many are
  // counted. A connection that is ended counts 1, an authenticated one 50; an unauthenticated one
  // that its caller ends counts .05, as health checks and wrong keys do, and its share of
  // max_bytes.
  static constexpr double kFailureBurst = 50;
  static constexpr double kFailuresPerSecond = 5;
  // Slots beyond Options::slots, so that none is reused at once: late calls of an ended connection
  // must not be taken for those of the next.
  static constexpr size_t kRestingSlots = 16;
  // Callers cancel calls, too. Those that gRPC drops unseen cannot be told from running ones. For
  // each of up to 16 connections of a key; more share what 16 have.
  static constexpr double kForgottenCallsPerSecond = 20;
  static constexpr int64_t kParallelMessages = 4;
  // How long the rest of a message may still arrive after its call was answered or refused.
  static constexpr std::chrono::seconds kRestOfMessage{5};

  explicit Connections(const Options& options);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Slots that Add returns are below it.
  size_t slots() const { return in_slot_.size(); }
  bool IsForProxies(size_t slot) const { return slot >= options_.slots + kRestingSlots; }

  // The slot of a new connection. Duplicates `socket`, which stays the caller's.
  // - If all slots are taken, the oldest connection of the address with the most ends.
  // - RESOURCE_EXHAUSTED: the address has too many unauthenticated connections, or too many of its
  //   connections failed.
  // - UNAVAILABLE: the slots of proxies are all taken: one is free again within milliseconds.
  absl::StatusOr<size_t> Add(int socket, const sockaddr_storage& peer, Clock::time_point now);

  // Ends those beyond a limit; returns how many. Forgets those that their callers ended.
  int64_t EndExcessive(Clock::time_point now);

  // For a process that runs out of memory. Returns how many it ended.
  int64_t EndUnauthenticated(Clock::time_point now);

  // Time until EndExcessive is due; nullopt: there are no connections.
  std::optional<std::chrono::milliseconds> NextLook() const;

  // The number of the slot's connection; 0: it has none.
  uint64_t InSlot(size_t slot) const;

  // The following do nothing for a connection that has ended.

  // Whether the connection is open and unauthenticated.
  bool IsUnauthenticated(uint64_t connection) const;

  // One of its calls has a valid key. The slot is free again. At max_connections, a connection of
  // the key that has more than half of them ends, without running calls if there is such a one; if
  // there is no such key, the new one. A connection of a proxy has the key from now on.
  void Authenticate(uint64_t connection, const AccessKey& key, Clock::time_point now);

  // A call begins. An unauthenticated connection ends beyond max_calls.
  void BeginCall(uint64_t connection, Clock::time_point now);

  // `bytes` of a complete message are the application's.
  void CountMessage(uint64_t connection, size_t bytes);

  // answered: not cancelled at once by the caller, and with a valid key.
  void EndCall(uint64_t connection, bool answered);

 private:
  // The cost of an authenticated connection.
  struct Use {
    Clock::time_point since;  // of the last look
    uint64_t received = 0;    // bytes at the last look
    uint64_t sent = 0;
    uint64_t segments_sent = 0;
    uint64_t answered = 0;              // bytes read when segments_sent last changed
    uint64_t unanswered = 0;            // bytes read since then
    double header_bytes = 0;            // of calls that began since
    double message_bytes = 0;           // of messages that were complete since
    double unread = 0;                  // bytes in no complete message
    int64_t most_running = 0;           // calls at a time, of late or while bytes are unanswered
    Clock::time_point most_running_at;  // when so many ran last
    double unfinished_calls = 0;        // falls by kForgottenCallsPerSecond
    std::optional<Clock::time_point> invalid_since;  // its key
  };
  struct Connection {
    int socket = -1;      // a duplicate
    std::string address;  // IPv4, or the first 64 bits of IPv6; empty: of a proxy
    Clock::time_point since;
    std::optional<size_t> slot;  // nullopt: authenticated
    int64_t calls = 0;           // before it is
    std::string key_id;          // from then on
    int64_t running = 0;         // calls, with those that gRPC dropped unseen
    Use use;
  };
  struct Failures {
    double count = 0;  // falls by kFailuresPerSecond
    Clock::time_point at;
  };
  using Map = std::map<uint64_t, Connection>;

  // The following require mutex_.
  bool Fails(const std::string& address, Clock::time_point now);
  void CountFailure(const std::string& address, double cost, Clock::time_point now);
  // False: there is none to end.
  bool MakePlace(Clock::time_point now);
  int64_t EndExcessiveUnauthenticated(Clock::time_point now);
  int64_t EndExcessiveAuthenticated(Clock::time_point now);
  // Updates the use of an authenticated connection. of_key: connections of its key. False: its
  // caller has ended it.
  bool Measure(Connection* connection, int64_t of_key, Clock::time_point now);
  bool IsExcessive(const Connection& connection, Clock::time_point now) const;
  std::chrono::milliseconds AuthenticatedInterval() const;
  std::map<std::string, int64_t> CountByKey() const;  // authenticated ones
  // Ends connections until their sum of `cost` is at most `limit`: of the key with the most the one
  // with the most.
  template <typename Cost>
  int64_t EndLargest(Cost cost, double limit, Clock::time_point now);
  Map::iterator OldestOfLargestAddress();
  // Shuts the socket down and forgets the connection.
  Map::iterator End(Map::iterator connection, double cost, Clock::time_point now);
  Map::iterator Forget(Map::iterator connection);
  void FreeSlot(Connection* connection);

  const Options options_;
  mutable std::mutex mutex_;  // guards the following
  uint64_t next_ = 1;
  Map connections_;                            // in order of arrival
  std::vector<uint64_t> in_slot_;              // 0: free
  std::deque<size_t> free_slots_;              // first freed first, see kRestingSlots
  std::deque<size_t> free_proxy_slots_;        // likewise
  std::map<std::string, int64_t> of_address_;  // unauthenticated ones
  std::map<std::string, Failures> failures_;
  int64_t authenticated_ = 0;
  Clock::time_point looked_at_;  // authenticated ones
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ACCESS_CONNECTIONS_H_
