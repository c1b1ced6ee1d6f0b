// The schema of the PostgreSQL store.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_SCHEMA_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_SCHEMA_H_

#include "absl/status/status.h"
#include "server/store/postgres/pool.h"

namespace privatemail::server::postgres {

// Creates the tables in one transaction, under an advisory lock, unless they are there.
// FAILED_PRECONDITION: a newer program has used the database. Errors of Connection.
absl::Status PrepareSchema(Pool* pool);

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_SCHEMA_H_
