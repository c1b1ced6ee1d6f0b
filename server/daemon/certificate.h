// The daemon's TLS identity.
#ifndef PRIVATEMAIL_SERVER_DAEMON_CERTIFICATE_H_
#define PRIVATEMAIL_SERVER_DAEMON_CERTIFICATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace privatemail::server {

struct TlsIdentity {
  std::string certificate_path;
  std::string key_path;
  std::string certificate_pem;  // the file: chain, leaf first
  std::string key_pem;          // the key alone; private: never logged
  std::string fingerprint;      // SHA-256 of the leaf's DER, 64 lower-case hex digits
  absl::Time not_after;         // when the first of the chain expires
  bool made_now = false;
};

// Reads and checks certificate and key, which gRPC would only find unusable when the first client
// comes. FAILED_PRECONDITION naming the flag and the file: not readable, no PEM certificate or key,
// a damaged one, a key of another certificate, a chain out of order, one that is not valid yet, or
// one that cannot be served, a key that is too short for one. Every signature whose signer is in
// the file is checked, a certificate's own included; of the last one's issuer only clients know
// more. An expired certificate is returned: see not_after.
absl::StatusOr<TlsIdentity> LoadIdentity(const std::string& certificate_path,
                                         const std::string& key_path);

// The self-signed identity in `directory` (server.crt, server.key), made there on first use: EC
// P-256, valid ten years, for localhost, 127.0.0.1, ::1 and this machine's name. The key file is
// readable by its owner alone. FAILED_PRECONDITION: the files cannot be made or read, or the key of
// an existing certificate is gone; making another silently would break every client's trust.
absl::StatusOr<TlsIdentity> SelfSignedIdentity(const std::string& directory);

// Reads a PEM file of authorities. FAILED_PRECONDITION naming `flag`: it holds no certificate, a
// damaged one (in its PEM, after which the rest would be left out in silence, or in its signature
// of itself), or none that is valid now.
absl::StatusOr<std::string> LoadAuthorities(const std::string& flag, const std::string& path);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_CERTIFICATE_H_
