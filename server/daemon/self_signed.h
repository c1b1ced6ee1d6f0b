// Creation of self-signed certificates.
#ifndef PRIVATEMAIL_SERVER_DAEMON_SELF_SIGNED_H_
#define PRIVATEMAIL_SERVER_DAEMON_SELF_SIGNED_H_

#include <string>

#include "absl/status/statusor.h"

namespace privatemail::server {

struct SelfSignedCertificate {
  std::string certificate_pem;
  std::string key_pem;  // private
};

// EC P-256 for a TLS server named localhost, 127.0.0.1, ::1 and this machine's host name. Valid for
// ten years from yesterday, for clients whose clocks are behind. Not an authority. INTERNAL:
// OpenSSL failed.
absl::StatusOr<SelfSignedCertificate> CreateSelfSigned();

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_SELF_SIGNED_H_
