// The daemon's certificate while it is served.
#ifndef PRIVATEMAIL_SERVER_DAEMON_SERVING_TLS_H_
#define PRIVATEMAIL_SERVER_DAEMON_SERVING_TLS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/daemon/certificate.h"

namespace privatemail::server {

// Content without a place on disk that others of this process read by a path. Replaced in one step:
// whoever opens the path gets the old content or the new.
class MemoryFile {
 public:
  // INTERNAL with the system's reason.
  static absl::StatusOr<MemoryFile> Make(absl::string_view content);
  MemoryFile(MemoryFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  MemoryFile& operator=(MemoryFile&&) = delete;
  ~MemoryFile();

  absl::Status Replace(absl::string_view content);
  std::string path() const;

 private:
  explicit MemoryFile(int file) : file_(file) {}
  int file_;  // descriptor, -1 once moved from
};

// Serves an identity over TLS 1.2 and 1.3 (gRPC knows no older ones) and lets its files change.
// gRPC watches files, but would go on without any certificate once it has read a bad one: what it
// watches are copies in memory, replaced by what was checked. Thread-safe.
class ServingTls {
 public:
  // An empty `client_ca` demands no certificates of clients. FAILED_PRECONDITION: its authorities
  // cannot be read. INTERNAL.
  static absl::StatusOr<std::unique_ptr<ServingTls>> Start(TlsIdentity identity,
                                                           const std::string& client_ca);

  std::shared_ptr<grpc::ServerCredentials> Credentials() const;

  // Reads the identity's files and the authorities again. True when they have changed: new
  // connections get them within two seconds, those that are there stay. When the new ones are
  // unusable, or expired, the former are served on: FAILED_PRECONDITION naming flag and file.
  absl::StatusOr<bool> Refresh();

  TlsIdentity identity() const;

 private:
  ServingTls(TlsIdentity identity, std::string client_ca, std::string authorities_pem,
             MemoryFile served, MemoryFile authorities);

  const std::string client_ca_;
  mutable std::mutex mutex_;  // guards what follows
  TlsIdentity identity_;
  std::string authorities_pem_;
  MemoryFile served_;  // private key, then certificate chain: one file, so that they change at once
  MemoryFile authorities_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_SERVING_TLS_H_
