// Network addresses of the form HOST:PORT.
#ifndef PRIVATEMAIL_COMMON_RPC_HOST_PORT_H_
#define PRIVATEMAIL_COMMON_RPC_HOST_PORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail {

struct HostPort {
  std::string host;  // without the brackets of an IPv6 address
  int port = 0;      // 0 to 65535

  // "127.0.0.1:50051", "[::1]:50051"
  std::string ToString() const;
};

// INVALID_ARGUMENT: "--listen must be HOST:PORT with a port from 0 to 65535, but is 'x'".
absl::StatusOr<HostPort> ParseHostPort(absl::string_view flag, absl::string_view text);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_RPC_HOST_PORT_H_
