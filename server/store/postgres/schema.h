// The tables of the PostgreSQL store, and how they come to be.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_SCHEMA_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_SCHEMA_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/store/postgres/pool.h"

namespace privatemail::server::postgres {

// SQL of this program's migrations, the first being number 1.
absl::Span<const char* const> Migrations();

// Brings the schema `privatemail` of the database up to the last of `migrations`: each that the
// table privatemail.migrations does not list yet runs in a transaction of its own, which lists it.
// One daemon at a time (advisory lock); the others wait and find nothing left to do.
// FAILED_PRECONDITION: the database has a migration that is not among these, so a newer program has
// used it. Errors as Connection.
absl::Status Migrate(Pool* pool, absl::Span<const char* const> migrations);

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_SCHEMA_H_
