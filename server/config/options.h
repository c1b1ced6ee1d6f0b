// Options of the daemon and their validation.
#ifndef PRIVATEMAIL_SERVER_CONFIG_OPTIONS_H_
#define PRIVATEMAIL_SERVER_CONFIG_OPTIONS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/access/limits.h"

namespace privatemail::server {

// All problems of a configuration, so that an operator sees them at once.
class Problems {
 public:
  // Ignores OK.
  void Add(const absl::Status& status);
  void Add(const Problems& others);

  const std::vector<absl::Status>& all() const { return all_; }

  // OK without problems; otherwise the first one's code and all messages, joined by "; ".
  absl::Status status() const;

 private:
  std::vector<absl::Status> all_;
};

// One field for each setting; settings.cc documents them. No field is a secret: secrets are in
// files that fields name.
struct DaemonOptions {
  std::string data_directory;
  // File with the libpq connection string of the PostgreSQL database that holds the collections;
  // empty: SQLite in the data directory. A file because the string may hold a password, which
  // belongs neither on a command line nor into the environment.
  std::string postgres_file;
  std::string shard;                       // "2/8"; empty: all items
  std::string shards;                      // of a front: ParseShards; empty: this is none
  std::string listen = "127.0.0.1:50051";  // port 0 picks a free one
  std::string tls_certificate;             // PEM; both empty: a self-signed certificate in
  std::string tls_key;                     // data_directory/tls
  std::string client_ca;                   // PEM; not empty: clients need a certificate it signed
  std::string trusted_proxies;             // IP addresses, separated by commas
  bool insecure = false;                   // neither TLS nor keys; loopback only
  std::string log_level = "info";
  std::string log_format = "text";
  double drain_seconds = 10;
  std::string audit_log;  // empty: audit.jsonl in the data directory; "off": none
  int64_t audit_max_bytes = int64_t{256} << 20;  // at most twice that on disk; 0: no limit
  std::string http;                              // empty: none
  std::string http_listen;                       // IP:PORT; empty: none
  std::string allowed_origins;                   // of web pages, separated by commas
  double auto_build_share = .1;                  // of the embedded items; 0: never
  int64_t memory = 0;                            // see ApplyMemory; 0: of the machine
  Limits limits;
};

// Number and count of "2/8". INVALID_ARGUMENT.
absl::StatusOr<std::pair<int64_t, int64_t>> ParseShard(absl::string_view text);
// The addresses of each shard's replicas: "a:1|b:1, c:1" has two of the first shard and one of the
// second. INVALID_ARGUMENT.
absl::StatusOr<std::vector<std::vector<std::string>>> ParseShards(absl::string_view text);
inline constexpr int64_t kMaxShards = 16;

// Sets the limits of memory to the parts of options->memory that settings.cc names.
void ApplyMemory(DaemonOptions* options);

// Path of the audit log; empty: none.
std::string AuditLogPath(const DaemonOptions& options);

// Missing or conflicting settings. Ranges of single settings are checked by Assign (settings.h).
//   - no data directory
//   - a certificate without its key, or the reverse
//   - TLS settings or proxies together with insecure, or insecure on a non-loopback address
//   - a malformed address or origin, or plain HTTP beyond loopback without proxies
//   - a shard or a front without PostgreSQL; a shard that anyone could call, or that is a front
Problems CheckOptions(const DaemonOptions& options);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONFIG_OPTIONS_H_
