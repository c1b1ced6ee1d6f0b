// TLS certificates and keys of the daemon, validated before use.
#ifndef PRIVATEMAIL_SERVER_DAEMON_CERTIFICATE_H_
#define PRIVATEMAIL_SERVER_DAEMON_CERTIFICATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace privatemail::server {

struct TlsIdentity {
  std::string certificate_path;
  std::string key_path;
  std::string certificate_pem;  // the file: chain, leaf first
  std::string key_pem;          // the key alone; private: never logged
  std::string fingerprint;      // SHA-256 of the leaf's DER, 64 lower-case hex digits
  absl::Time not_after;         // earliest expiry in the chain
  bool created = false;         // by this call
  std::string remedy;           // for wrong dates, as the end of a sentence
};

// Loads and validates certificate and key; gRPC would report errors only when the first client
// connects. An expired certificate is returned, see not_after.
// FAILED_PRECONDITION naming flag and file:
//   - unreadable, not PEM, or damaged
//   - the key belongs to another certificate
//   - the chain is out of order, or a signature whose signer is in the file is invalid
//   - not valid yet (with what to do), not issued for a server, or rejected by TLS (key too short)
absl::StatusOr<TlsIdentity> LoadIdentity(const std::string& certificate_path,
                                         const std::string& key_path);

// The self-signed identity in `directory` (server.crt, server.key with mode 0600), created on first
// use: EC P-256 for a TLS server named localhost, 127.0.0.1, ::1 and this machine's host name.
// Valid for ten years from yesterday, for clients whose clocks are behind. Not an authority.
// FAILED_PRECONDITION: the files cannot be created or read, or the key of an existing certificate
// is missing (a new one would break every client's trust).
absl::StatusOr<TlsIdentity> LoadOrCreateIdentity(const std::string& directory);

// The content of a PEM file of authorities. FAILED_PRECONDITION naming `flag`: no certificate, a
// damaged one (OpenSSL would silently skip the rest), or none that is valid now.
absl::StatusOr<std::string> LoadAuthorities(const std::string& flag, const std::string& path);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_CERTIFICATE_H_
