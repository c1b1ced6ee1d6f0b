// The schema of the SQLite store.
#ifndef PRIVATEMAIL_SERVER_STORE_SQLITE_SCHEMA_H_
#define PRIVATEMAIL_SERVER_STORE_SQLITE_SCHEMA_H_

#include "absl/status/status.h"
#include "common/sqlite/sqlite.h"

namespace privatemail::server {

// Configures durable writes, and creates the tables in one transaction unless they are there.
// Errors of CheckSchema.
absl::Status PrepareSchema(sqlite::Database* database);

// FAILED_PRECONDITION: the file has another version. Errors of sqlite::Database.
absl::Status CheckSchema(sqlite::Database* database);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_SQLITE_SCHEMA_H_
