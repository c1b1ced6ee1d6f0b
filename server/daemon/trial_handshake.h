// Whether a certificate can be served, before it is.
#ifndef PRIVATEMAIL_SERVER_DAEMON_TRIAL_HANDSHAKE_H_
#define PRIVATEMAIL_SERVER_DAEMON_TRIAL_HANDSHAKE_H_

#include <vector>

#include "absl/status/status.h"
#include "common/rpc/pem.h"

namespace privatemail::server {

// Makes a TLS server of `chain`, which is not empty, and `key` as gRPC does (TLS 1.2 and 1.3, ECDHE
// with AES-GCM, this machine's security level) and lets a client that trusts everyone connect to it
// in memory: what fails here fails for every client. FAILED_PRECONDITION with OpenSSL's reason, "ee
// key too small" for one. Takes about a millisecond.
absl::Status TryHandshake(const std::vector<Certificate>& chain, EVP_PKEY* key);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_TRIAL_HANDSHAKE_H_
