#include "server/access/connections.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace privatemail::server {
namespace {

// From here on, a new address first removes those whose failures are over.
constexpr size_t kManyAddresses = 10'000;

constexpr double kEndedByCaller = .05;
constexpr double kEndedAuthenticated = 50;

constexpr std::chrono::milliseconds kUnauthenticatedInterval(20);
constexpr std::chrono::milliseconds kAuthenticatedInterval(50);
// Looking at one takes .5 us.
constexpr std::chrono::microseconds kAuthenticatedIntervalPerConnection(50);

// Bytes that a connection may receive, generously: of a call's headers; of a message's frames
// (HTTP/2 and TLS); of window updates (a part of what was sent); of pings.
constexpr double kCallBytes = 1024;
constexpr double kMessageBytes = 256;
constexpr double kFramingFactor = 1.02;
constexpr double kSentPerReceived = 32;
constexpr double kPingBytesPerSecond = 256;

constexpr uint8_t kEstablished = 1;  // TCP_ESTABLISHED of netinet/tcp.h, which linux/tcp.h excludes

std::string ToText(const std::string& address) {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(address.size() == 16 ? AF_INET6 : AF_INET, address.data(), text, sizeof(text));
  return text;
}

// 4 or 16 bytes; empty: not IP.
std::string AddressOf(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(peer);
    return {reinterpret_cast<const char*>(&ipv4.sin_addr), 4};
  }
  if (peer.ss_family != AF_INET6) return "";
  const in6_addr& ipv6 = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&ipv6);
  return {reinterpret_cast<const char*>(&ipv6) + (mapped ? 12 : 0), mapped ? 4u : 16u};
}

// Who may own one IPv6 address usually owns its 64-bit network.
std::string NetworkOf(const std::string& address) {
  return address.substr(0, address.size() == 16 ? 8 : 4);
}

struct Traffic {
  bool open = false;
  uint64_t received = 0;  // bytes
  uint64_t waiting = 0;   // of them, not yet read by the process
  uint64_t sent = 0;
  uint64_t segments_sent = 0;
};
Traffic TrafficOf(int socket) {
  tcp_info info = {};
  socklen_t length = sizeof(info);
  const bool known = ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0;
  int waiting = 0;
  if (::ioctl(socket, SIOCINQ, &waiting) != 0) waiting = 0;
  return {known && info.tcpi_state == kEstablished, info.tcpi_bytes_received,
          static_cast<uint64_t>(waiting), info.tcpi_bytes_acked, info.tcpi_data_segs_out};
}

// Of an ended connection: gRPC would still read what has arrived, which may be MiBs of headers.
void DiscardReceived(int socket) {
  constexpr size_t kAtOnce = 16 << 20;
  while (::recv(socket, nullptr, kAtOnce, MSG_DONTWAIT | MSG_TRUNC) > 0) {
  }
}

}  // namespace

Connections::Connections(const Options& options)
    : options_(options), in_slot_(options.slots + kRestingSlots, 0) {
  if (!options_.trusted_proxies.empty()) {
    in_slot_.resize(in_slot_.size() + options.proxy_slots + kRestingSlots, 0);
  }
  for (size_t slot = 0; slot < in_slot_.size(); ++slot) {
    (IsForProxies(slot) ? free_proxy_slots_ : free_slots_).push_back(slot);
  }
}

Connections::~Connections() {
  for (const auto& [number, connection] : connections_) ::close(connection.socket);
}

bool Connections::Fails(const std::string& address, Clock::time_point now) {
  const auto found = failures_.find(address);
  if (found == failures_.end()) return false;
  Failures& failures = found->second;
  const double passed = std::chrono::duration<double>(now - failures.at).count();
  failures.count = std::max(0.0, failures.count - std::max(0.0, passed) * kFailuresPerSecond);
  failures.at = std::max(failures.at, now);
  const bool fails = failures.count >= kFailureBurst;
  if (failures.count == 0) failures_.erase(found);
  return fails;
}

void Connections::CountFailure(const std::string& address, double cost, Clock::time_point now) {
  if (failures_.size() >= kManyAddresses && !failures_.contains(address)) {
    std::vector<std::string> addresses;
    for (const auto& [other, failures] : failures_) addresses.push_back(other);
    for (const std::string& other : addresses) Fails(other, now);
    if (failures_.size() >= kManyAddresses) return;
  }
  Fails(address, now);
  double& count = failures_.try_emplace(address, Failures{0, now}).first->second.count;
  count = std::min(count + cost, 2 * kFailureBurst);
}

absl::StatusOr<size_t> Connections::Add(int socket, const sockaddr_storage& peer,
                                        Clock::time_point now) {
  const std::string from = AddressOf(peer);
  const bool proxied = options_.trusted_proxies.contains(from);
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::string address = proxied ? "" : NetworkOf(from);
  std::deque<size_t>& free = proxied ? free_proxy_slots_ : free_slots_;
  const auto count = of_address_.find(address);
  const bool many = count != of_address_.end() && count->second >= options_.max_per_address;
  const bool full = free.size() <= kRestingSlots;
  if (proxied && full) return absl::UnavailableError("the slots of proxies are all taken");
  if (!proxied && (many || Fails(address, now))) {
    return absl::ResourceExhaustedError(
        absl::StrCat("address ", ToText(from),
                     " has too many connections that show no valid key or fail: they are closed"));
  }
  const int duplicate = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) return absl::ResourceExhaustedError("the process has no open file left");
  if (full) {
    const auto oldest = OldestOfLargestAddress();
    // An address with a single connection is no flood.
    const bool floods = of_address_.at(oldest->second.address) > 1;
    End(oldest, floods ? 1 : 0, now);
  }
  const size_t slot = free.front();
  free.pop_front();
  Connection& added = connections_[next_];
  added.socket = duplicate;
  added.address = address;
  added.since = now;
  added.slot = slot;
  in_slot_[slot] = next_++;
  if (!proxied) ++of_address_[address];
  return slot;
}

std::map<std::string, int64_t> Connections::CountByKey() const {
  std::map<std::string, int64_t> of_key;
  for (const auto& [number, connection] : connections_) {
    if (!connection.slot.has_value()) ++of_key[connection.key_id];
  }
  return of_key;
}

bool Connections::MakePlace(Clock::time_point now) {
  const std::map<std::string, int64_t> of_key = CountByKey();
  auto least = connections_.end();
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    const Connection& one = it->second;
    if (one.slot.has_value()) continue;
    const int64_t count = of_key.at(one.key_id);
    if (count <= 1 || count <= options_.max_connections / 2) continue;
    const bool first = least == connections_.end();
    if (first || one.running < least->second.running) least = it;
  }
  if (least == connections_.end()) return false;
  End(least, kEndedByCaller, now);
  return true;
}

int64_t Connections::EndExcessive(Clock::time_point now) {
  const std::lock_guard<std::mutex> guard(mutex_);
  int64_t ended = EndExcessiveUnauthenticated(now);
  if (now - looked_at_ < AuthenticatedInterval()) return ended;
  looked_at_ = now;
  ended += EndExcessiveAuthenticated(now);
  ended += EndLargest([](const Connection& one) { return one.use.unread; },
                      static_cast<double>(options_.max_unread_bytes), now);
  ended += EndLargest([](const Connection& one) { return one.use.unfinished_calls; },
                      static_cast<double>(options_.max_all_unfinished_calls), now);
  return ended;
}

int64_t Connections::EndExcessiveUnauthenticated(Clock::time_point now) {
  int64_t ended = 0;
  for (const uint64_t number : std::vector<uint64_t>(in_slot_)) {
    if (number == 0) continue;
    const auto it = connections_.find(number);
    const Traffic traffic = TrafficOf(it->second.socket);
    double cost = kEndedByCaller +
                  static_cast<double>(traffic.received) / static_cast<double>(options_.max_bytes);
    const bool late =
        std::chrono::duration<double>(now - it->second.since).count() > options_.seconds;
    const bool excessive =
        traffic.open && (late || traffic.received > static_cast<uint64_t>(options_.max_bytes));
    if (excessive) cost = std::max(1.0, cost);
    if (excessive) ++ended;
    if (excessive || !traffic.open) End(it, cost, now);
  }
  return ended;
}

int64_t Connections::EndExcessiveAuthenticated(Clock::time_point now) {
  const std::map<std::string, int64_t> of_key = CountByKey();
  int64_t ended = 0;
  for (auto it = connections_.begin(); it != connections_.end();) {
    Connection& connection = it->second;
    if (connection.slot.has_value()) {
      ++it;
      continue;
    }
    if (!Measure(&connection, of_key.at(connection.key_id), now)) {
      // gRPC may still hold it for an answer that is not taken.
      it = End(it, /*cost=*/0, now);
      continue;
    }
    const bool excessive = IsExcessive(connection, now);
    Use& use = connection.use;
    if (connection.running >= use.most_running) use.most_running_at = now;
    if (use.unanswered == 0 && now - use.most_running_at > kRestOfMessage) {
      use.most_running = connection.running;
    }
    if (excessive) ++ended;
    it = excessive ? End(it, kEndedAuthenticated, now) : std::next(it);
  }
  return ended;
}

bool Connections::Measure(Connection* connection, int64_t of_key, Clock::time_point now) {
  Use& use = connection->use;
  const Traffic traffic = TrafficOf(connection->socket);
  if (!traffic.open) return false;
  const double seconds = std::max(0.0, std::chrono::duration<double>(now - use.since).count());
  const double expected = use.header_bytes +
                          static_cast<double>(traffic.sent - use.sent) / kSentPerReceived +
                          seconds * kPingBytesPerSecond;
  const double received = static_cast<double>(traffic.received - use.received);
  use.unread = std::max(0.0, use.unread + std::max(0.0, received - expected) - use.message_bytes);
  const double forgotten =
      kForgottenCallsPerSecond * std::min(1.0, 16.0 / static_cast<double>(of_key));
  use.unfinished_calls = std::max(0.0, use.unfinished_calls - seconds * forgotten);
  const uint64_t consumed = traffic.received - std::min(traffic.received, traffic.waiting);
  if (traffic.segments_sent != use.segments_sent) use.answered = consumed;
  use.unanswered = consumed - std::min(consumed, use.answered);
  // Messages whose calls have ended are dropped, but the bytes may be of a header, which is kept.
  if (connection->running == 0) {
    use.unread = std::min(use.unread, static_cast<double>(use.unanswered));
  }
  use.segments_sent = traffic.segments_sent;
  use.received = traffic.received;
  use.sent = traffic.sent;
  use.header_bytes = 0;
  use.message_bytes = 0;
  use.since = now;
  if (options_.is_valid(connection->key_id)) {
    use.invalid_since.reset();
  } else if (!use.invalid_since.has_value()) {
    use.invalid_since = now;
  }
  return true;
}

bool Connections::IsExcessive(const Connection& connection, Clock::time_point now) const {
  const Use& use = connection.use;
  const int64_t unanswered =
      options_.max_unanswered_bytes +
      std::min(use.most_running, kParallelMessages) * options_.max_unanswered_bytes_of_call;
  const bool invalid =
      use.invalid_since.has_value() &&
      std::chrono::duration<double>(now - *use.invalid_since).count() > options_.seconds;
  return invalid || use.unanswered > static_cast<uint64_t>(unanswered) ||
         use.unfinished_calls > static_cast<double>(options_.max_unfinished_calls);
}

template <typename Cost>
int64_t Connections::EndLargest(Cost cost, double limit, Clock::time_point now) {
  double sum = 0;
  for (const auto& [number, connection] : connections_) sum += cost(connection);
  if (sum <= limit) return 0;
  std::map<absl::string_view, double> of_key;
  for (const auto& [number, connection] : connections_) {
    of_key[connection.key_id] += cost(connection);
  }
  std::vector<std::tuple<double, double, uint64_t>> largest;  // of the key, of it, its number
  for (const auto& [number, connection] : connections_) {
    largest.emplace_back(of_key[connection.key_id], cost(connection), number);
  }
  std::sort(largest.rbegin(), largest.rend());
  int64_t ended = 0;
  for (const auto& [of_its_key, own, number] : largest) {
    if (sum <= limit) break;
    End(connections_.find(number), kEndedAuthenticated, now);
    sum -= own;
    ++ended;
  }
  return ended;
}

int64_t Connections::EndUnauthenticated(Clock::time_point now) {
  const std::lock_guard<std::mutex> guard(mutex_);
  int64_t ended = 0;
  for (const uint64_t number : std::vector<uint64_t>(in_slot_)) {
    if (number == 0) continue;
    End(connections_.find(number), /*cost=*/0, now);
    ++ended;
  }
  return ended;
}

Connections::Map::iterator Connections::OldestOfLargestAddress() {
  const auto largest =
      std::max_element(of_address_.begin(), of_address_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const int64_t most = largest->second;
  return std::find_if(connections_.begin(), connections_.end(), [&](const auto& it) {
    const Connection& one = it.second;
    return one.slot.has_value() && !one.address.empty() && of_address_.at(one.address) == most;
  });
}

Connections::Map::iterator Connections::End(Map::iterator connection, double cost,
                                            Clock::time_point now) {
  if (!connection->second.address.empty()) CountFailure(connection->second.address, cost, now);
  ::shutdown(connection->second.socket, SHUT_RDWR);
  DiscardReceived(connection->second.socket);
  return Forget(connection);
}

Connections::Map::iterator Connections::Forget(Map::iterator connection) {
  ::close(connection->second.socket);
  if (!connection->second.slot.has_value()) --authenticated_;
  FreeSlot(&connection->second);
  return connections_.erase(connection);
}

void Connections::FreeSlot(Connection* connection) {
  if (!connection->slot.has_value()) return;
  in_slot_[*connection->slot] = 0;
  (IsForProxies(*connection->slot) ? free_proxy_slots_ : free_slots_).push_back(*connection->slot);
  connection->slot.reset();
  if (connection->address.empty()) return;
  const auto count = of_address_.find(connection->address);
  if (--count->second == 0) of_address_.erase(count);
}

std::chrono::milliseconds Connections::AuthenticatedInterval() const {
  const auto all = kAuthenticatedIntervalPerConnection * connections_.size();
  return std::max(kAuthenticatedInterval,
                  std::chrono::duration_cast<std::chrono::milliseconds>(all));
}

std::optional<std::chrono::milliseconds> Connections::NextLook() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const bool unauthenticated = std::ssize(connections_) > authenticated_;
  if (unauthenticated) return kUnauthenticatedInterval;
  if (!connections_.empty()) return AuthenticatedInterval();
  return std::nullopt;
}

uint64_t Connections::InSlot(size_t slot) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return in_slot_[slot];
}

bool Connections::IsUnauthenticated(uint64_t connection) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = connections_.find(connection);
  return found != connections_.end() && found->second.slot.has_value();
}

void Connections::Authenticate(uint64_t connection, const AccessKey& key, Clock::time_point now) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  if (found->second.address.empty()) found->second.key_id = key.id;
  if (!found->second.slot.has_value()) return;
  if (authenticated_ >= options_.max_connections && !MakePlace(now)) {
    End(found, kEndedByCaller, now);
    return;
  }
  FreeSlot(&found->second);
  ++authenticated_;
  found->second.key_id = key.id;
  found->second.use.since = now;
}

void Connections::BeginCall(uint64_t connection, Clock::time_point now) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  Connection& known = found->second;
  ++known.running;
  if (known.running >= known.use.most_running) {
    known.use.most_running = known.running;
    known.use.most_running_at = now;
  }
  known.use.header_bytes += kCallBytes;
  if (!known.slot.has_value()) {
    ++known.use.unfinished_calls;
  } else if (++known.calls > options_.max_calls) {
    End(found, 1, now);
  }
}

void Connections::CountMessage(uint64_t connection, size_t bytes) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  found->second.use.message_bytes += kMessageBytes + kFramingFactor * static_cast<double>(bytes);
}

void Connections::EndCall(uint64_t connection, bool answered) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  Connection& known = found->second;
  known.running = std::max(int64_t{0}, known.running - 1);
  if (answered) known.use.unfinished_calls = std::max(0.0, known.use.unfinished_calls - 1);
}

}  // namespace privatemail::server
