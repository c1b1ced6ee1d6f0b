// A certificate that vouches for itself.
#ifndef PRIVATEMAIL_SERVER_DAEMON_SELF_SIGNED_H_
#define PRIVATEMAIL_SERVER_DAEMON_SELF_SIGNED_H_

#include <string>

#include "absl/status/statusor.h"

namespace privatemail::server {

struct SelfSigned {
  std::string certificate_pem;
  std::string key_pem;  // private
};

// EC P-256, valid for ten years and since yesterday, for clients whose clocks are behind, as a TLS
// server named localhost, 127.0.0.1, ::1 and the machine's host name; it cannot sign other
// certificates. INTERNAL when OpenSSL fails.
absl::StatusOr<SelfSigned> MakeSelfSigned();

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_SELF_SIGNED_H_
