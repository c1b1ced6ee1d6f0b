// The schema of the SQLite store.
#ifndef PRIVATEMAIL_SERVER_STORE_SQLITE_SCHEMA_H_
#define PRIVATEMAIL_SERVER_STORE_SQLITE_SCHEMA_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/sqlite/sqlite.h"

namespace privatemail::server {

// Configures durable writes, and creates or migrates the tables in one transaction.
// FAILED_PRECONDITION: the file has a newer version. Errors of sqlite::Database.
absl::Status PrepareSchema(sqlite::Database* database);

// Whether the tables can be read as they are. FAILED_PRECONDITION: the file has a newer version.
absl::StatusOr<bool> HasCurrentSchema(sqlite::Database* database);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_SQLITE_SCHEMA_H_
