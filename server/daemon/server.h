// A listening gRPC server over a data directory and a store.
#ifndef PRIVATEMAIL_SERVER_DAEMON_SERVER_H_
#define PRIVATEMAIL_SERVER_DAEMON_SERVER_H_

#include <grpcpp/server.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/daemon/certificate.h"
#include "server/daemon/options.h"
#include "server/engine/catalog.h"
#include "server/services/collections_service.h"
#include "server/services/retrieval_service.h"
#include "server/store/directory_lock.h"

namespace privatemail {

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

  const ListenAddress& address() const { return address_; }  // with the port that was picked
  // Nothing when TLS is off.
  const std::optional<TlsIdentity>& identity() const { return identity_; }

 private:
  DaemonServer(ListenAddress address, std::optional<DirectoryLock> lock,
               std::optional<TlsIdentity> identity, std::unique_ptr<Catalog> catalog);

  absl::Status Listen(const DaemonOptions& options);

  ListenAddress address_;
  std::optional<DirectoryLock> lock_;  // of the data directory, where the store does not hold it
  std::optional<TlsIdentity> identity_;
  std::unique_ptr<Catalog> catalog_;
  RetrievalService retrieval_;
  CollectionsService collections_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_DAEMON_SERVER_H_
