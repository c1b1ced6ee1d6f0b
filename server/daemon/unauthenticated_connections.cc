#include "server/daemon/unauthenticated_connections.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace privatemail::server {
namespace {

// From here on, a new address first removes those whose failures are over.
constexpr size_t kManyAddresses = 10'000;

constexpr double kEndedByCaller = .05;

constexpr uint8_t kEstablished = 1;  // TCP_ESTABLISHED of netinet/tcp.h, which linux/tcp.h excludes

// Who may own one IPv6 address usually owns its 64-bit network.
std::string AddressOf(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(peer);
    return {reinterpret_cast<const char*>(&ipv4.sin_addr), 4};
  }
  if (peer.ss_family != AF_INET6) return "";
  const in6_addr& ipv6 = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&ipv6);
  return {reinterpret_cast<const char*>(&ipv6) + (mapped ? 12 : 0), mapped ? 4u : 8u};
}

}  // namespace

UnauthenticatedConnections::UnauthenticatedConnections(const Options& options)
    : options_(options), in_slot_(options.slots + kRestingSlots, 0) {
  for (size_t slot = 0; slot < in_slot_.size(); ++slot) free_slots_.push_back(slot);
}

UnauthenticatedConnections::~UnauthenticatedConnections() {
  for (const auto& [number, connection] : connections_) ::close(connection.socket);
}

bool UnauthenticatedConnections::Fails(const std::string& address, Clock::time_point now) {
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

void UnauthenticatedConnections::CountFailure(const std::string& address, double cost,
                                              Clock::time_point now) {
  if (failures_.size() >= kManyAddresses && !failures_.contains(address)) {
    std::vector<std::string> addresses;
    for (const auto& [other, failures] : failures_) addresses.push_back(other);
    for (const std::string& other : addresses) Fails(other, now);
    if (failures_.size() >= kManyAddresses) return;
  }
  Fails(address, now);
  failures_.try_emplace(address, Failures{0, now}).first->second.count += cost;
}

std::optional<size_t> UnauthenticatedConnections::Add(int socket, const sockaddr_storage& peer,
                                                      Clock::time_point now) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::string address = AddressOf(peer);
  const auto count = of_address_.find(address);
  const bool full = count != of_address_.end() && count->second >= options_.max_per_address;
  if (full || Fails(address, now)) return std::nullopt;
  const int duplicate = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) return std::nullopt;
  if (connections_.size() >= options_.slots) {
    const auto oldest = OldestOfLargestAddress();
    // An address with a single connection is no flood.
    const bool floods = of_address_.at(oldest->second.address) > 1;
    End(oldest, floods ? 1 : 0, now);
  }
  const size_t slot = free_slots_.front();
  free_slots_.pop_front();
  in_slot_[slot] = next_;
  ++of_address_[address];
  connections_.emplace(next_, Connection{duplicate, address, slot, now});
  ++next_;
  return slot;
}

auto UnauthenticatedConnections::StateOf(const Connection& connection, Clock::time_point now,
                                         double* cost) const -> State {
  tcp_info info = {};
  socklen_t length = sizeof(info);
  const bool known = ::getsockopt(connection.socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0;
  const auto bytes = static_cast<int64_t>(info.tcpi_bytes_received);
  *cost = kEndedByCaller + static_cast<double>(bytes) / static_cast<double>(options_.max_bytes);
  if (!known || info.tcpi_state != kEstablished) return State::kEnded;
  const bool late =
      std::chrono::duration<double>(now - connection.since).count() > options_.seconds;
  const bool excessive = late || bytes > options_.max_bytes;
  if (excessive) *cost = std::max(1.0, *cost);
  return excessive ? State::kExcessive : State::kOpen;
}

int64_t UnauthenticatedConnections::EndExcessive(Clock::time_point now) {
  const std::lock_guard<std::mutex> guard(mutex_);
  int64_t ended = 0;
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    double cost = 1;
    const State state = StateOf(connection->second, now, &cost);
    if (state == State::kExcessive) ++ended;
    connection = state == State::kOpen ? std::next(connection) : End(connection, cost, now);
  }
  return ended;
}

int64_t UnauthenticatedConnections::EndAll(Clock::time_point now) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto ended = std::ssize(connections_);
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    connection = End(connection, /*cost=*/0, now);
  }
  return ended;
}

UnauthenticatedConnections::Connections::iterator
UnauthenticatedConnections::OldestOfLargestAddress() {
  const auto largest =
      std::max_element(of_address_.begin(), of_address_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const int64_t most = largest->second;
  return std::find_if(connections_.begin(), connections_.end(), [&](const auto& connection) {
    return of_address_.at(connection.second.address) == most;
  });
}

UnauthenticatedConnections::Connections::iterator UnauthenticatedConnections::End(
    Connections::iterator connection, double cost, Clock::time_point now) {
  CountFailure(connection->second.address, cost, now);
  ::shutdown(connection->second.socket, SHUT_RDWR);
  return Forget(connection);
}

UnauthenticatedConnections::Connections::iterator UnauthenticatedConnections::Forget(
    Connections::iterator connection) {
  const Connection& known = connection->second;
  ::close(known.socket);
  in_slot_[known.slot] = 0;
  free_slots_.push_back(known.slot);
  const auto count = of_address_.find(known.address);
  if (--count->second == 0) of_address_.erase(count);
  return connections_.erase(connection);
}

bool UnauthenticatedConnections::empty() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return connections_.empty();
}

uint64_t UnauthenticatedConnections::InSlot(size_t slot) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return in_slot_[slot];
}

bool UnauthenticatedConnections::Contains(uint64_t connection) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return connections_.contains(connection);
}

void UnauthenticatedConnections::Authenticate(uint64_t connection) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (const auto found = connections_.find(connection); found != connections_.end()) Forget(found);
}

void UnauthenticatedConnections::CountCall(uint64_t connection, Clock::time_point now) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  if (++found->second.calls > options_.max_calls) End(found, 1, now);
}

}  // namespace privatemail::server
