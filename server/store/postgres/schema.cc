#include "server/store/postgres/schema.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server::postgres {
namespace {

// Versions are counted from 1; 0: there are no tables yet.
//
// - Blobs: as in decode.h.
// - Ids and payloads: bytea orders as SQLite does, holds any UTF-8 (text has no NUL) and is
//   independent of the database's encoding.
// - Keys: from sequences, never reused: no row passes from a deleted collection to a new one.
// - items.inserted, items.version: the versions of an item's insertion and of its last change.
// - deletions: tombstones until an embedding without the items is saved.
// - cells: of an embedding, whose key they name. Their keys are of the same sequence. Parts are
//   large and hard to compress.
constexpr int64_t kSchemaVersion = 1;
constexpr char kSchema[] = R"sql(
  CREATE TABLE collections (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid text NOT NULL UNIQUE,
    name text COLLATE "C" NOT NULL UNIQUE,
    parameters bytea NOT NULL,
    anchor_features bytea NOT NULL,
    anchor_labels bytea NOT NULL,
    items bigint NOT NULL DEFAULT 0,
    latest_version bigint NOT NULL DEFAULT 0
  );
  CREATE TABLE items (
    collection bigint NOT NULL,
    id bytea NOT NULL,
    label integer NOT NULL,
    features bytea NOT NULL,
    payload bytea NOT NULL,
    inserted bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (collection, id)
  );
  CREATE INDEX items_by_version ON items (collection, version);
  CREATE TABLE deletions (
    collection bigint NOT NULL,
    version bigint NOT NULL,
    inserted bigint NOT NULL,
    id bytea NOT NULL,
    PRIMARY KEY (collection, version)
  );
  CREATE SEQUENCE embedding_keys;
  CREATE TABLE embeddings (
    collection bigint PRIMARY KEY,
    key bigint NOT NULL UNIQUE,
    version bigint NOT NULL,
    items_version bigint NOT NULL,
    objective double precision NOT NULL,
    anchor_coordinates bytea NOT NULL
  );
  CREATE TABLE embedded_items (
    embedding bigint NOT NULL,
    position bigint NOT NULL,
    id bytea NOT NULL,
    label integer NOT NULL,
    coordinates bytea NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (embedding, position)
  );
  CREATE TABLE cells (
    collection bigint PRIMARY KEY,
    key bigint NOT NULL,
    embedding bigint NOT NULL,
    quality bytea NOT NULL DEFAULT ''
  );
  CREATE TABLE cell_parts (
    cells bigint NOT NULL,
    part bigint NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (cells, part)
  );
  ALTER TABLE cell_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;
)sql";

// The advisory lock: "pmail" in ASCII.
constexpr int64_t kSchemaLock = 0x706d61696c;

}  // namespace

absl::Status PrepareSchema(Pool* pool) {
  PM_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(pool, Transaction::Kind::kWrite));
  // Released at the end of the transaction.
  PM_RETURN_IF_ERROR(
      transaction.Query("SELECT pg_advisory_xact_lock($1)", Parameters().Int(kSchemaLock))
          .status());
  PM_RETURN_IF_ERROR(
      transaction.Execute("CREATE SCHEMA IF NOT EXISTS privatemail;"
                          "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)"));
  PM_ASSIGN_OR_RETURN(const Result result,
                      transaction.Query("SELECT coalesce(max(version), 0) FROM schema_version"));
  const int64_t version = result.Int(0, 0);
  if (version > kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat("the store's schema has version ", version,
                                                      ", this program knows versions up to ",
                                                      kSchemaVersion));
  }
  if (version == 0) {
    PM_RETURN_IF_ERROR(transaction.Execute(kSchema));
    PM_RETURN_IF_ERROR(transaction
                           .Query("INSERT INTO schema_version (version) VALUES ($1)",
                                  Parameters().Int(kSchemaVersion))
                           .status());
  }
  return transaction.Commit();
}

}  // namespace privatemail::server::postgres
