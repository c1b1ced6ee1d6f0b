// Schema and migrations of the PostgreSQL store.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_SCHEMA_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_SCHEMA_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/store/postgres/pool.h"

namespace privatemail::server::postgres {

// SQL of the migrations, from number 1.
absl::Span<const char* const> Migrations();

// Runs each migration that the table privatemail.migrations does not list, in its own transaction,
// under an advisory lock. FAILED_PRECONDITION: the database lists an unknown migration, so a newer
// program has used it. Errors of Connection.
absl::Status Migrate(Pool* pool, absl::Span<const char* const> migrations);

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_SCHEMA_H_
