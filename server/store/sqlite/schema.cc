#include "server/store/sqlite/schema.h"

#include <cstdint>
#include <iterator>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

// Migrations from one version to the next. Blobs as in decode.h. AUTOINCREMENT: keys are never
// reused, so no row can pass from a deleted collection to a new one.
constexpr const char* kMigrations[] = {
    R"sql(
  CREATE TABLE collections (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    parameters BLOB NOT NULL,
    anchor_features BLOB NOT NULL,
    anchor_labels BLOB NOT NULL,
    items INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE items (
    collection INTEGER NOT NULL,
    id TEXT NOT NULL,
    label INTEGER NOT NULL,
    features BLOB NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (collection, id)
  ) STRICT;
  CREATE TABLE embeddings (
    collection INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    objective REAL NOT NULL,
    anchor_coordinates BLOB NOT NULL
  ) STRICT;
  CREATE TABLE embedded_items (
    collection INTEGER NOT NULL,
    position INTEGER NOT NULL,
    id TEXT NOT NULL,
    label INTEGER NOT NULL,
    coordinates BLOB NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (collection, position)
  ) STRICT, WITHOUT ROWID;
)sql",
    // Versions of items:
    // - items.inserted, items.version: the versions of an item's insertion and of its last change.
    // - deletions: tombstones until an embedding without the items is saved.
    //
    // Existing items get versions in the order of their class:
    //   1. embedded and unchanged; the embedding (items_version) follows these
    //   2. embedded and changed since: inserted at 0, before everything
    //   3. not embedded
    // A change of features alone cannot be detected.
    R"sql(
  ALTER TABLE collections ADD COLUMN latest_version INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE items ADD COLUMN inserted INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE items ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE embeddings ADD COLUMN items_version INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE deletions (
    collection INTEGER NOT NULL,
    version INTEGER NOT NULL,
    inserted INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (collection, version)
  ) STRICT, WITHOUT ROWID;
  CREATE TEMP TABLE placed AS
    SELECT item, collection, class,
           row_number() OVER (PARTITION BY collection ORDER BY class, item) AS version
    FROM (SELECT i.rowid AS item, i.collection AS collection,
                 CASE WHEN e.id IS NULL THEN 3
                      WHEN e.label = i.label AND e.payload = i.payload THEN 1
                      ELSE 2 END AS class
          FROM items i LEFT JOIN embedded_items e
            ON e.collection = i.collection AND e.id = i.id);
  UPDATE items SET version = p.version, inserted = iif(p.class = 2, 0, p.version)
    FROM placed p WHERE p.item = items.rowid;
  UPDATE collections SET latest_version =
    (SELECT count(*) FROM placed p WHERE p.collection = collections.key);
  UPDATE embeddings SET items_version =
    (SELECT count(*) FROM placed p WHERE p.collection = embeddings.collection AND p.class = 1);
  DROP TABLE placed;
  CREATE INDEX items_by_version ON items (collection, version);
)sql",
    // The cells of the embedding; without quality until it is measured.
    R"sql(
  ALTER TABLE embeddings ADD COLUMN cell_quality BLOB NOT NULL DEFAULT x'';
  CREATE TABLE cell_parts (
    collection INTEGER NOT NULL,
    part INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (collection, part)
  ) STRICT;
)sql"};

constexpr int64_t kSchemaVersion = std::size(kMigrations);

absl::StatusOr<int64_t> SchemaVersionOf(sqlite::Database* database) {
  PM_ASSIGN_OR_RETURN(const std::string text, database->Query("PRAGMA user_version"));
  int64_t version = 0;
  if (absl::SimpleAtoi(text, &version) && version >= 0 && version <= kSchemaVersion) return version;
  return absl::FailedPreconditionError(
      absl::StrCat("database file ", database->path(), " has schema version ", text,
                   ", this program knows versions up to ", kSchemaVersion));
}

}  // namespace

absl::StatusOr<bool> HasCurrentSchema(sqlite::Database* database) {
  PM_ASSIGN_OR_RETURN(const int64_t version, SchemaVersionOf(database));
  return version == kSchemaVersion;
}

absl::Status PrepareSchema(sqlite::Database* database) {
  PM_ASSIGN_OR_RETURN(const int64_t version, SchemaVersionOf(database));
  PM_ASSIGN_OR_RETURN(const std::string mode, database->Query("PRAGMA journal_mode = WAL"));
  if (mode != "wal") {
    return absl::FailedPreconditionError(
        absl::StrCat("database file ", database->path(),
                     " cannot keep a write-ahead log here, its journal mode stays '", mode, "'"));
  }
  PM_RETURN_IF_ERROR(database->Execute("PRAGMA synchronous = FULL"));
  if (version == kSchemaVersion) return absl::OkStatus();
  PM_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(database));
  for (int64_t next = version; next < kSchemaVersion; ++next) {
    PM_RETURN_IF_ERROR(database->Execute(kMigrations[next]));
  }
  PM_RETURN_IF_ERROR(database->Execute(absl::StrCat("PRAGMA user_version = ", kSchemaVersion)));
  return transaction.Commit();
}

}  // namespace privatemail::server
