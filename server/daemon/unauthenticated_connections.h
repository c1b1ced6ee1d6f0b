// Connections whose caller has not yet shown a key, and the limits on what they may cost.
#ifndef PRIVATEMAIL_SERVER_DAEMON_UNAUTHENTICATED_CONNECTIONS_H_
#define PRIVATEMAIL_SERVER_DAEMON_UNAUTHENTICATED_CONNECTIONS_H_

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace privatemail::server {

// Ends connections that cost too much before one of their calls has a valid key. gRPC bounds
// neither the calls that a connection begins and resets nor the bytes of an unfinished header, and
// keeps memory for each.
//
// A connection takes a slot until it authenticates or ends. Calls arrive with the number of the
// slot's listener, not with their socket, so each slot has one such connection at a time.
// Thread-safe.
class UnauthenticatedConnections {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    size_t slots = 64;             // connections of all addresses
    int64_t max_per_address = 16;  // at once
    double seconds = 10;           // to the first call with a valid key
    int64_t max_bytes = 1 << 20;   // received: a first message with a wrong key, and its refusal
    int64_t max_calls = 100;
  };
  // An address whose connections fail is refused for a while. One that is ended counts 1; one that
  // its caller ends counts .05, as health checks and wrong keys do, and its share of max_bytes.
  static constexpr double kFailureBurst = 50;
  static constexpr double kFailuresPerSecond = 5;
  // Slots beyond Options::slots, so that none is reused at once: late calls of an ended connection
  // must not be taken for those of the next.
  static constexpr size_t kRestingSlots = 16;

  explicit UnauthenticatedConnections(const Options& options);
  ~UnauthenticatedConnections();
  UnauthenticatedConnections(const UnauthenticatedConnections&) = delete;
  UnauthenticatedConnections& operator=(const UnauthenticatedConnections&) = delete;

  // The slot of a new connection; nullopt: its address has too many, or too many failed. If all
  // slots are taken, the oldest connection of the address with the most ends. Duplicates `socket`,
  // which stays the caller's.
  std::optional<size_t> Add(int socket, const sockaddr_storage& peer, Clock::time_point now);

  // Ends those beyond a limit; returns how many. Forgets those that their callers ended.
  int64_t EndExcessive(Clock::time_point now);

  // For a process that runs out of memory. Returns how many it ended.
  int64_t EndAll(Clock::time_point now);

  bool empty() const;

  // The number of the slot's connection; 0: it has none.
  uint64_t InSlot(size_t slot) const;

  // Whether the connection has neither authenticated nor ended.
  bool Contains(uint64_t connection) const;

  // One of its calls has a valid key: it is no longer one of these.
  void Authenticate(uint64_t connection);

  // One of its calls has no valid key. Ends it beyond max_calls.
  void CountCall(uint64_t connection, Clock::time_point now);

 private:
  struct Connection {
    int socket = -1;      // a duplicate
    std::string address;  // IPv4, or the first 64 bits of IPv6
    size_t slot = 0;
    Clock::time_point since;
    int64_t calls = 0;
  };
  struct Failures {
    double count = 0;  // falls by kFailuresPerSecond
    Clock::time_point at;
  };
  using Connections = std::map<uint64_t, Connection>;

  // The following require mutex_.
  bool Fails(const std::string& address, Clock::time_point now);
  void CountFailure(const std::string& address, double cost, Clock::time_point now);
  enum class State { kOpen, kEnded, kExcessive };
  // *cost: of a failure.
  State StateOf(const Connection& connection, Clock::time_point now, double* cost) const;
  Connections::iterator OldestOfLargestAddress();
  // Shuts the socket down and forgets the connection.
  Connections::iterator End(Connections::iterator connection, double cost, Clock::time_point now);
  Connections::iterator Forget(Connections::iterator connection);

  const Options options_;
  mutable std::mutex mutex_;  // guards the following
  uint64_t next_ = 1;
  Connections connections_;        // in order of arrival
  std::vector<uint64_t> in_slot_;  // 0: free
  // First freed first, see kRestingSlots.
  std::deque<size_t> free_slots_;
  std::map<std::string, int64_t> of_address_;
  std::map<std::string, Failures> failures_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_UNAUTHENTICATED_CONNECTIONS_H_
