#include "server/store/schema.h"

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

constexpr int64_t kSchemaVersion = 1;

// Blobs of numbers are little-endian float32 (features), float64 (coordinates) and int32 (labels),
// row-major. `parameters` is a serialised v1.PublicParameters. Keys of collections are never used
// again, so no row can pass from a deleted collection to a new one.
constexpr char kTables[] = R"sql(
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
)sql";

}  // namespace

absl::Status PrepareSchema(sqlite::Database* database) {
  PM_ASSIGN_OR_RETURN(const std::string text, database->Query("PRAGMA user_version"));
  int64_t version = 0;
  if (!absl::SimpleAtoi(text, &version) || version < 0 || version > kSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("database file ", database->path(), " has schema version ", text,
                     ", this program knows versions up to ", kSchemaVersion));
  }
  PM_ASSIGN_OR_RETURN(const std::string mode, database->Query("PRAGMA journal_mode = WAL"));
  if (mode != "wal") {
    return absl::FailedPreconditionError(
        absl::StrCat("database file ", database->path(),
                     " cannot keep a write-ahead log here, its journal mode stays '", mode, "'"));
  }
  PM_RETURN_IF_ERROR(database->Execute("PRAGMA synchronous = FULL"));
  if (version == kSchemaVersion) return absl::OkStatus();
  PM_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(database));
  PM_RETURN_IF_ERROR(database->Execute(kTables));
  PM_RETURN_IF_ERROR(database->Execute(absl::StrCat("PRAGMA user_version = ", kSchemaVersion)));
  return transaction.Commit();
}

}  // namespace privatemail
