// How many files the process may have open, connections among them.
#ifndef PRIVATEMAIL_SERVER_DAEMON_OPEN_FILES_H_
#define PRIVATEMAIL_SERVER_DAEMON_OPEN_FILES_H_

#include <cstdint>

#include "absl/status/status.h"

namespace privatemail::server {

// Open files that are not connections: those of the store (a pool of PostgreSQL connections among
// them), of monitors, logs and gRPC itself.
inline constexpr int64_t kOwnOpenFiles = 256;

// FAILED_PRECONDITION naming max_connections and the limit: the process must not have as many as
// these connections and its own take. Changes nothing.
absl::Status CheckOpenFiles(int64_t max_connections);

// Raises the process's limit to that, where it is lower. Errors: those of CheckOpenFiles.
absl::Status AllowOpenFiles(int64_t max_connections);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_OPEN_FILES_H_
