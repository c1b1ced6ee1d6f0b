// A listening gRPC server over a data directory and a store.
#ifndef PRIVATEMAIL_SERVER_DAEMON_SERVER_H_
#define PRIVATEMAIL_SERVER_DAEMON_SERVER_H_

#include <grpcpp/server.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/access/admission.h"
#include "server/access/audit_log.h"
#include "server/access/key_ring.h"
#include "server/daemon/acceptor.h"
#include "server/daemon/certificate.h"
#include "server/daemon/http.h"
#include "server/config/options.h"
#include "server/daemon/serving_tls.h"
#include "server/engine/automatic_builds.h"
#include "server/engine/catalog.h"
#include "server/services/collections_service.h"
#include "server/services/gate.h"
#include "server/services/health_service.h"
#include "server/services/keys_service.h"
#include "server/services/metrics.h"
#include "server/services/retrieval_service.h"
#include "server/store/directory_lock.h"

namespace privatemail::server {

// Thread-safe once started. Serves until Drain or destruction.
class DaemonServer {
 public:
  // Opens the store, prepares TLS and listens. Every failure names what an operator can change:
  // INVALID_ARGUMENT (flags), FAILED_PRECONDITION (files, a locked directory, an address that is in
  // use), DATA_LOSS (a damaged database), UNAVAILABLE (a database server that cannot be reached).
  static absl::StatusOr<std::unique_ptr<DaemonServer>> Start(const DaemonOptions& options);

  ~DaemonServer();

  // Accepts no more calls, lets those under way finish for at most `grace` and cancels the rest;
  // returns when all have ended.
  void Drain(absl::Duration grace);

  // Takes over what of `updated`, which is valid, can be changed while calls are served, and does
  // what ReloadFiles does. The log says what became of each.
  void Reload(const DaemonOptions& updated);

  // Reads keys and certificates again and reopens the audit log; what fails stays as it was. The
  // log says what became of each.
  void ReloadFiles();

  // Reads the certificates again; what fails leaves the former in place. The log tells of changes.
  void RefreshCertificates();

  const ListenAddress& address() const { return address_; }  // with the port that was picked
  // IP:PORT of metrics and probes; empty: off.
  std::string http_address() const { return http_ == nullptr ? "" : http_->address(); }
  // The file with the admin key that the first start made; empty when it is not there any more, or
  // keys are off.
  std::string admin_key_path() const;
  // Whether that was this start.
  bool made_admin_key() const { return keys_ != nullptr && keys_->made_admin_key(); }
  // What is served now; nothing when TLS is off.
  std::optional<TlsIdentity> identity() const {
    return tls_ == nullptr ? std::nullopt : std::optional(tls_->identity());
  }
  // As they are in force.
  DaemonOptions options() const;

 private:
  // What is opened before anything is served.
  struct Parts {
    ListenAddress address;
    std::optional<DirectoryLock> lock;  // of the data directory, where the store does not hold it
    std::unique_ptr<ServingTls> tls;    // null: TLS is off
    std::unique_ptr<Catalog> catalog;
    std::unique_ptr<KeyRing> keys;    // null: keys are off
    std::unique_ptr<AuditLog> audit;  // null: none is kept
  };
  DaemonServer(const DaemonOptions& options, Parts parts);

  AutomaticBuilds::Hooks BuildHooks();
  absl::Status Listen(const DaemonOptions& options);
  // Of what the daemon itself does.
  void Audit(absl::string_view event);
  absl::Status ListenToMonitors(const DaemonOptions& options);

  ListenAddress address_;
  std::optional<DirectoryLock> lock_;  // of the data directory, where the store does not hold it
  mutable std::mutex options_mutex_;   // guards options_
  DaemonOptions options_;
  std::unique_ptr<ServingTls> tls_;  // null: TLS is off
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<KeyRing> keys_;    // null: keys are off
  std::unique_ptr<AuditLog> audit_;  // null: none is kept
  Admission admission_;
  Metrics metrics_;
  Gate gate_;
  RetrievalService retrieval_;
  CollectionsService collections_;
  KeysService key_service_;
  HealthService health_;
  AutomaticBuilds builds_;  // after what it reports to
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<HttpServer> http_;  // null: off
};

AutomaticBuildOptions AutomaticBuildsOf(const DaemonOptions& options);
CatalogOptions CatalogOptionsOf(const DaemonOptions& options);

// Level and format of the log.
void ApplyLogSettings(const DaemonOptions& options);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_SERVER_H_
