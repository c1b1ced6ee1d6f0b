// Network addresses.
#ifndef PRIVATEMAIL_COMMON_RPC_HOST_PORT_H_
#define PRIVATEMAIL_COMMON_RPC_HOST_PORT_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace privatemail {

struct HostPort {
  std::string host;  // without the brackets of an IPv6 address
  int port = 0;      // 0 to 65535

  // "127.0.0.1:50051", "[::1]:50051"
  std::string ToString() const;
};

// INVALID_ARGUMENT: "--listen must be HOST:PORT with a port from 0 to 65535, but is 'x'".
absl::StatusOr<HostPort> ParseHostPort(absl::string_view flag, absl::string_view text);

// The same for an IP address. INVALID_ARGUMENT: "--http must name an IP address, but is
// 'localhost:1'".
absl::StatusOr<HostPort> ParseIpPort(absl::string_view flag, absl::string_view text);

// Whether a host can only be this machine: localhost, 127.0.0.0/8, ::1.
bool IsLoopback(const std::string& host);

// Separated by commas; in network byte order, 4 or 16 bytes each (4 if IPv4 is mapped to IPv6).
// INVALID_ARGUMENT: "--proxies must be IP addresses, separated by commas, but has 'x'".
absl::StatusOr<std::set<std::string>> ParseIpAddresses(absl::string_view flag,
                                                       absl::string_view text);

struct FlaggedAddress {
  std::string flag;  // "--listen"
  HostPort address;
};
// Listens for a moment on every IP address of the host names, because the libraries give no reason
// when they cannot. Blocks while host names are resolved. FAILED_PRECONDITION: "cannot listen on
// 127.0.0.1:50051: Address already in use; ...", naming the flag, also if two of the addresses are
// equal.
absl::Status CheckCanListen(absl::Span<const FlaggedAddress> addresses);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_RPC_HOST_PORT_H_
