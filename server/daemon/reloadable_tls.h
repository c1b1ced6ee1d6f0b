// TLS server credentials whose certificate files may change at run time.
#ifndef PRIVATEMAIL_SERVER_DAEMON_RELOADABLE_TLS_H_
#define PRIVATEMAIL_SERVER_DAEMON_RELOADABLE_TLS_H_

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/daemon/certificate.h"

namespace privatemail::server {

// TLS 1.2 and 1.3 (gRPC supports no older ones). Serves only validated certificates. Thread-safe.
class ReloadableTls {
 public:
  // client_ca: path of the authorities of client certificates; empty: none are required.
  // FAILED_PRECONDITION: client_ca cannot be read.
  static absl::StatusOr<std::unique_ptr<ReloadableTls>> Start(TlsIdentity identity,
                                                              const std::string& client_ca);

  // For one server, which this must outlive.
  std::shared_ptr<grpc::ServerCredentials> Credentials();

  // Reads the files again. True: they have changed; new connections use them, existing connections
  // stay. FAILED_PRECONDITION naming flag and file: the new ones are unusable or expired, and the
  // former stay in use.
  absl::StatusOr<bool> Refresh();

  TlsIdentity identity() const;

 private:
  ReloadableTls(TlsIdentity identity, std::string client_ca, std::string authorities_pem)
      : client_ca_(std::move(client_ca)),
        identity_(std::move(identity)),
        authorities_pem_(std::move(authorities_pem)) {}

  // gRPC calls it for each handshake; `self` is a ReloadableTls.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config);

  const std::string client_ca_;
  mutable std::mutex mutex_;  // guards the following
  TlsIdentity identity_;
  std::string authorities_pem_;
  bool has_changed_ = true;  // since the last Fetch
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_RELOADABLE_TLS_H_
