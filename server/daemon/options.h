// The daemon's flags.
#ifndef PRIVATEMAIL_SERVER_DAEMON_OPTIONS_H_
#define PRIVATEMAIL_SERVER_DAEMON_OPTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail {

struct DaemonOptions {
  std::string data_directory;
  std::string listen = "127.0.0.1:50051";  // port 0 picks a free one
  std::string tls_certificate;  // PEM files; both empty: a self-signed certificate is kept under
  std::string tls_key;          // data_directory/tls
  std::string client_ca;        // PEM; not empty: clients must present a certificate it signed
  bool insecure = false;        // no TLS; loopback only
  bool reflection = false;      // lets anyone list services and messages
};

struct ListenAddress {
  std::string host;  // without the brackets of an IPv6 address
  int port = 0;      // 0 to 65535
  bool loopback = false;

  // "127.0.0.1:50051", "[::1]:50051"
  std::string ToString() const;
};

// INVALID_ARGUMENT: "--listen must be HOST:PORT with a port from 0 to 65535, but is 'x'".
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// INVALID_ARGUMENT when flags contradict each other: a certificate without its key, TLS flags
// beside --insecure, --insecure on an address that other machines can reach.
absl::Status Validate(const DaemonOptions& options);

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_DAEMON_OPTIONS_H_
