#include "server/store/sqlite/schema.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

// Versions are counted from 1; a file without tables has version 0.
//
// - Blobs: as in decode.h.
// - AUTOINCREMENT: keys are never reused, so no row passes from a deleted collection to a new one.
// - items.inserted, items.version: the versions of an item's insertion and of its last change.
// - deletions: tombstones until an embedding without the items is saved.
// - cell_quality: empty until it is measured.
constexpr int64_t kSchemaVersion = 1;
constexpr char kSchema[] = R"sql(
  CREATE TABLE collections (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    parameters BLOB NOT NULL,
    anchor_features BLOB NOT NULL,
    anchor_labels BLOB NOT NULL,
    items INTEGER NOT NULL DEFAULT 0,
    latest_version INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE items (
    collection INTEGER NOT NULL,
    id TEXT NOT NULL,
    label INTEGER NOT NULL,
    features BLOB NOT NULL,
    payload TEXT NOT NULL,
    inserted INTEGER NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (collection, id)
  ) STRICT;
  CREATE INDEX items_by_version ON items (collection, version);
  CREATE TABLE deletions (
    collection INTEGER NOT NULL,
    version INTEGER NOT NULL,
    inserted INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (collection, version)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE embeddings (
    collection INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    items_version INTEGER NOT NULL,
    objective REAL NOT NULL,
    anchor_coordinates BLOB NOT NULL,
    cell_quality BLOB NOT NULL DEFAULT x''
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
  CREATE TABLE cell_parts (
    collection INTEGER NOT NULL,
    part INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (collection, part)
  ) STRICT;
)sql";

}  // namespace

absl::Status CheckSchema(sqlite::Database* database) {
  PM_ASSIGN_OR_RETURN(const std::string version, database->Query("PRAGMA user_version"));
  if (version == absl::StrCat(kSchemaVersion)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("database file ", database->path(), " has schema version ", version,
                   ", this program knows version ", kSchemaVersion));
}

absl::Status PrepareSchema(sqlite::Database* database) {
  PM_ASSIGN_OR_RETURN(const std::string version, database->Query("PRAGMA user_version"));
  const bool is_new = version == "0";
  if (!is_new) PM_RETURN_IF_ERROR(CheckSchema(database));
  PM_ASSIGN_OR_RETURN(const std::string mode, database->Query("PRAGMA journal_mode = WAL"));
  if (mode != "wal") {
    return absl::FailedPreconditionError(
        absl::StrCat("database file ", database->path(),
                     " cannot keep a write-ahead log here, its journal mode stays '", mode, "'"));
  }
  PM_RETURN_IF_ERROR(database->Execute("PRAGMA synchronous = FULL"));
  if (!is_new) return absl::OkStatus();
  PM_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(database));
  PM_RETURN_IF_ERROR(
      database->Execute(absl::StrCat(kSchema, "PRAGMA user_version = ", kSchemaVersion)));
  return transaction.Commit();
}

}  // namespace privatemail::server
