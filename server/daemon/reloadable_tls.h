// TLS server credentials whose certificate files may change at run time.
#ifndef PRIVATEMAIL_SERVER_DAEMON_RELOADABLE_TLS_H_
#define PRIVATEMAIL_SERVER_DAEMON_RELOADABLE_TLS_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>

#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/daemon/certificate.h"

namespace privatemail::server {

// An anonymous memory file that other code of this process opens by path. Replace is atomic:
// readers get the old content or the new.
class MemoryFile {
 public:
  // INTERNAL with the system's reason.
  static absl::StatusOr<MemoryFile> Create(absl::string_view content);
  MemoryFile(MemoryFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  MemoryFile& operator=(MemoryFile&&) = delete;
  ~MemoryFile();

  absl::Status Replace(absl::string_view content);
  std::string path() const;

 private:
  explicit MemoryFile(int file) : file_(file) {}
  int file_;  // descriptor, -1 once moved from
};

// TLS 1.2 and 1.3 (gRPC supports no older ones). gRPC's file watcher would serve no certificate at
// all after reading a bad file, so it watches validated copies in memory. Thread-safe.
class ReloadableTls {
 public:
  // client_ca: path of the authorities of client certificates; empty: none are required.
  // FAILED_PRECONDITION: client_ca cannot be read. INTERNAL: no memory file.
  static absl::StatusOr<std::unique_ptr<ReloadableTls>> Start(TlsIdentity identity,
                                                              const std::string& client_ca);

  std::shared_ptr<grpc::ServerCredentials> Credentials() const;

  // Reads the files again. True: they have changed; new connections use them within two seconds,
  // existing connections stay. FAILED_PRECONDITION naming flag and file: the new ones are unusable
  // or expired, and the former stay in use.
  absl::StatusOr<bool> Refresh();

  TlsIdentity identity() const;

 private:
  ReloadableTls(TlsIdentity identity, std::string client_ca, std::string authorities_pem,
                MemoryFile served, MemoryFile authorities);

  const std::string client_ca_;
  mutable std::mutex mutex_;  // guards the following
  TlsIdentity identity_;
  std::string authorities_pem_;
  MemoryFile served_;  // private key and chain in one file, so that they change atomically
  MemoryFile authorities_;
  const std::shared_ptr<grpc::experimental::CertificateProviderInterface> watched_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_RELOADABLE_TLS_H_
