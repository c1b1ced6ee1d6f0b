// What a daemon is told when it starts.
#ifndef PRIVATEMAIL_SERVER_CONFIG_OPTIONS_H_
#define PRIVATEMAIL_SERVER_CONFIG_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/host_port.h"
#include "server/access/limits.h"
#include "server/config/problems.h"

namespace privatemail::server {

// Where collections are kept.
enum class StoreKind {
  kSqlite,    // in the data directory
  kPostgres,  // in a PostgreSQL database, which several daemons may share
};

// One field for each setting; settings.cc says what each is for. None of them is a secret: secrets
// are in files that they name.
struct DaemonOptions {
  std::string data_directory;
  std::string store = "sqlite";  // or "postgres"
  // File that holds the libpq connection string, with --store postgres: it may hold a password,
  // which belongs neither on a command line nor into the environment.
  std::string postgres_file;
  // Connections to it at most, beside one that listens; calls that change or read items and find
  // none wait for 10 s and then fail with RESOURCE_EXHAUSTED.
  int64_t postgres_connections = 8;
  std::string listen = "127.0.0.1:50051";  // port 0 picks a free one
  std::string tls_certificate;  // PEM files; both empty: a self-signed certificate is kept under
  std::string tls_key;          // data_directory/tls
  std::string client_ca;        // PEM; not empty: clients must present a certificate it signed
  bool insecure = false;        // neither TLS nor keys; loopback only
  bool reflection = false;      // lets anyone list services and messages
  std::string log_level = "info";
  std::string log_format = "text";
  double drain_seconds = 10;
  double tls_reload_seconds = 60;
  std::string audit_log;  // empty: audit.jsonl in the data directory; "off": none
  int64_t audit_max_bytes = int64_t{256} << 20;  // at most twice that is on disk; 0: no limit
  std::string http;                              // empty: none
  double auto_build_share = .1;                  // of the embedded items; 0: never
  double auto_build_quiet_seconds = 5;           // without a change
  std::string index = "exact";                   // or "ivf"
  double index_recall = .99;                     // that "ivf" must reach, .5 to 1
  Limits limits;
};

// Port 0 stands for whichever is free.
struct ListenAddress : HostPort {
  bool loopback = false;
};

// Errors: those of ParseHostPort.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// Where the audit log is kept; empty: nowhere.
std::string AuditLogPath(const DaemonOptions& options);

// INVALID_ARGUMENT: no such store.
absl::StatusOr<StoreKind> ParseStoreKind(absl::string_view text);

// What is missing, or contradicts something else: no data directory, store "postgres" without
// postgres_file or the other way round, a certificate without its key, TLS settings beside
// insecure, insecure on an address that other machines can reach, addresses that are none. The
// range of each setting is checked where it is read.
Problems Contradictions(const DaemonOptions& options);

// INVALID_ARGUMENT, naming all of them, where there are any.
absl::Status Validate(const DaemonOptions& options);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONFIG_OPTIONS_H_
