// The daemon's flags.
#ifndef PRIVATEMAIL_SERVER_DAEMON_OPTIONS_H_
#define PRIVATEMAIL_SERVER_DAEMON_OPTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/host_port.h"

namespace privatemail {

// Where collections are kept.
enum class StoreKind {
  kSqlite,    // in the data directory
  kPostgres,  // in a PostgreSQL database, which several daemons may share
};

struct DaemonOptions {
  std::string data_directory;
  std::string store = "sqlite";  // or "postgres"
  // File that holds the libpq connection string, with --store postgres: it may hold a password,
  // which belongs neither on a command line nor into the environment.
  std::string postgres_file;
  // Connections to it at most, beside one that listens; calls that change or read items and find
  // none wait for 10 s and then fail with RESOURCE_EXHAUSTED.
  int postgres_connections = 8;
  std::string listen = "127.0.0.1:50051";  // port 0 picks a free one
  std::string tls_certificate;  // PEM files; both empty: a self-signed certificate is kept under
  std::string tls_key;          // data_directory/tls
  std::string client_ca;        // PEM; not empty: clients must present a certificate it signed
  bool insecure = false;        // no TLS; loopback only
  bool reflection = false;      // lets anyone list services and messages
  // Threads that serve calls. One call holds one of them until it ends, also an upload whose caller
  // has fallen silent; calls beyond are refused with RESOURCE_EXHAUSTED.
  int max_threads = 64;
};

// Port 0 stands for whichever is free.
struct ListenAddress : HostPort {
  bool loopback = false;
};

// Errors: those of ParseHostPort.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// INVALID_ARGUMENT: no such store.
absl::StatusOr<StoreKind> ParseStoreKind(absl::string_view text);

// INVALID_ARGUMENT when flags contradict each other: a certificate without its key, TLS flags
// beside --insecure, --insecure on an address that other machines can reach, --store postgres
// without --postgres-file or the other way round.
absl::Status Validate(const DaemonOptions& options);

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_DAEMON_OPTIONS_H_
