// The tables of the embedded store.
#ifndef PRIVATEMAIL_SERVER_STORE_SQLITE_SCHEMA_H_
#define PRIVATEMAIL_SERVER_STORE_SQLITE_SCHEMA_H_

#include "absl/status/status.h"
#include "common/sqlite/sqlite.h"

namespace privatemail::server {

// Sets the connection up for durable writes, creates the tables in a new file and brings those of
// an older version up to date, in one transaction. FAILED_PRECONDITION when the file has a newer
// version than this program knows; errors of the file as sqlite::Database.
absl::Status PrepareSchema(sqlite::Database* database);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_SQLITE_SCHEMA_H_
