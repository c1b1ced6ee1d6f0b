// The daemon: a gRPC server over a data directory and a store.
#ifndef PRIVATEMAIL_SERVER_DAEMON_SERVER_H_
#define PRIVATEMAIL_SERVER_DAEMON_SERVER_H_

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/descriptor.h"
#include "common/rpc/host_port.h"
#include "server/access/admission.h"
#include "server/access/audit_log.h"
#include "server/access/key_ring.h"
#include "server/config/options.h"
#include "server/connect/http_server.h"
#include "server/daemon/certificate.h"
#include "server/daemon/reloadable_tls.h"
#include "server/engine/catalog.h"
#include "server/engine/maintenance.h"
#include "server/services/collections_service.h"
#include "server/services/dispatcher.h"
#include "server/services/health_service.h"
#include "server/services/metrics.h"
#include "server/services/shards.h"

namespace privatemail::server {

// Thread-safe once started. Serves until Drain or destruction.
class DaemonServer {
 public:
  // Opens the store, prepares TLS and listens. Messages name what the operator can change.
  //   INVALID_ARGUMENT     flags
  //   FAILED_PRECONDITION  files, a locked directory, an address in use
  //   DATA_LOSS            a damaged database
  //   UNAVAILABLE          a database server that cannot be reached
  static absl::StatusOr<std::unique_ptr<DaemonServer>> Start(const DaemonOptions& options);

  ~DaemonServer();

  // Stops accepting calls, waits up to `grace` for running ones, cancels the rest, and returns when
  // all have ended.
  void Drain(absl::Duration grace);

  // Applies the live settings of `updated` (valid), then ReloadFiles. Logs every change.
  void Reload(const DaemonOptions& updated);

  // Reads keys and certificates again and reopens the audit log. Failures are logged and leave the
  // former state in use.
  void ReloadFiles();

  // The certificate part of ReloadFiles; logs only changes and failures.
  void RefreshCertificates();

  const HostPort& address() const { return parts_.address; }  // with the actual port
  // IP:PORT of metrics and probes; empty: off.
  std::string http_address() const { return http_ == nullptr ? "" : http_->address(); }
  // IP:PORT of the RPCs over HTTP; empty: off.
  std::string gateway_address() const { return gateway_ == nullptr ? "" : gateway_->address(); }
  // File of the admin key that the first start created; empty if it is gone or keys are off.
  std::string admin_key_path() const;
  // Whether this start created it.
  bool created_admin_key() const { return parts_.keys != nullptr && parts_.keys->made_admin_key(); }
  // The identity in use; nullopt if TLS is off.
  std::optional<TlsIdentity> identity() const {
    return parts_.tls == nullptr ? std::nullopt : std::optional(parts_.tls->identity());
  }
  // The options in effect.
  DaemonOptions options() const;

 private:
  // Resources that are opened before the server is constructed.
  struct Parts {
    HostPort address;
    std::optional<Descriptor> lock;      // of the data directory, unless the store holds it
    std::unique_ptr<ReloadableTls> tls;  // null: TLS is off
    std::unique_ptr<Catalog> catalog;
    std::unique_ptr<KeyRing> keys;    // null: keys are off
    std::unique_ptr<AuditLog> audit;  // null: no audit log
    std::unique_ptr<Shards> shards;   // null: this is no front
  };
  DaemonServer(const DaemonOptions& options, Parts parts);

  Maintenance::Hooks MaintenanceHooks();
  absl::Status Listen(const DaemonOptions& options);
  absl::Status ListenHttp(const DaemonOptions& options);
  // Records an event of the daemon itself in the audit log.
  void Audit(absl::string_view event);

  mutable std::mutex options_mutex_;  // guards options_
  DaemonOptions options_;
  Parts parts_;
  Admission admission_;
  Metrics metrics_;
  Dispatcher dispatcher_;
  CollectionsService collections_;
  HealthService health_;
  Maintenance maintenance_;  // reports to the members above
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::Server> gateway_server_;  // has no port; null: off
  std::unique_ptr<HttpServer> gateway_;           // before it; null: off
  std::unique_ptr<HttpServer> http_;              // null: off
};

RebuildOptions ToAutomaticBuildOptions(const DaemonOptions& options);
CatalogOptions ToCatalogOptions(const DaemonOptions& options);

// Sets level and format of the log.
void ApplyLogSettings(const DaemonOptions& options);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_SERVER_H_
