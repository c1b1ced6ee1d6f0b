// SqliteStore: creation, import and deletion of collections. A deletion removes the collection in
// one small transaction and its rows in many, which bounds the wait of other calls and the space on
// an almost full disk.
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "server/store/decode.h"
#include "server/store/sqlite/sqlite_store.h"

namespace privatemail::server {
namespace {

using sqlite::Database;
using sqlite::Statement;
using sqlite::Transaction;

// Tables with rows of collections, and an indexed column. That of items follows the order of
// insertion, so that whole pages become free.
struct Table {
  const char* name;
  const char* column;
};
constexpr Table kTables[] = {{"items", "version"},
                             {"deletions", "version"},
                             {"embedded_items", "position"},
                             {"cell_parts", "part"},
                             {"embeddings", "collection"}};
constexpr int kRowsAtOnce = 1000;

// std::mutex is not fair: without a pause this thread would mostly get it again.
constexpr absl::Duration kYieldTime = absl::Milliseconds(1);

absl::Status CheckFree(Database* database, absl::string_view column, const std::string& value) {
  PM_ASSIGN_OR_RETURN(Statement find, database->Prepare(absl::StrCat(
                                          "SELECT 1 FROM collections WHERE ", column, " = ?1")));
  PM_ASSIGN_OR_RETURN(const bool taken, find.BindText(1, value).Step());
  if (!taken) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("collection ", value, " exists already"));
}

// In the caller's transaction. key: empty for a new one.
absl::Status Insert(Database* database, const StoredCollection& collection,
                    std::optional<int64_t> key, uint64_t items, uint64_t latest_version) {
  PM_RETURN_IF_ERROR(CheckFree(database, "name", collection.name));
  PM_RETURN_IF_ERROR(CheckFree(database, "uuid", collection.parameters.collection_uuid));
  const std::string parameters = EncodeParameters(collection.parameters);
  const Anchors& anchors = collection.anchors;
  PM_ASSIGN_OR_RETURN(
      Statement insert,
      database->Prepare("INSERT INTO collections (uuid, name, parameters, anchor_features, "
                        "anchor_labels, items, latest_version, key) "
                        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"));
  insert.BindText(1, collection.parameters.collection_uuid).BindText(2, collection.name);
  insert.BindBlob(3, parameters.data(), parameters.size());
  insert.BindBlob(4, anchors.features.data(),
                  static_cast<size_t>(anchors.features.size()) * sizeof(float));
  insert.BindBlob(5, anchors.labels.data(), anchors.labels.size() * sizeof(int32_t));
  insert.Bind(6, static_cast<int64_t>(items)).Bind(7, static_cast<int64_t>(latest_version));
  if (key) insert.Bind(8, *key);  // null otherwise, for which SQLite takes the next
  return insert.Run();
}

// In the caller's transaction. Versions continue after `version`.
absl::Status InsertItems(Database* database, int64_t key, const Gallery& part, uint64_t version) {
  PM_ASSIGN_OR_RETURN(Statement insert,
                      database->Prepare("INSERT INTO items (collection, id, label, features, "
                                        "payload, inserted, version) "
                                        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)"));
  for (size_t row = 0; row < part.ids.size(); ++row) {
    const auto features = part.features.row(static_cast<Eigen::Index>(row));
    insert.Bind(1, key).BindText(2, part.ids[row]).Bind(3, int64_t{part.labels[row]});
    insert.BindBlob(4, features.data(), static_cast<size_t>(features.size()) * sizeof(float));
    insert.BindText(5, part.payloads[row]).Bind(6, static_cast<int64_t>(++version));
    PM_RETURN_IF_ERROR(insert.Run());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SqliteStore::Create(const StoredCollection& collection) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, BeginWrite());
  PM_RETURN_IF_ERROR(Insert(database_.get(), collection, std::nullopt, 0, 0));
  return transaction.Commit();
}

absl::StatusOr<int64_t> SqliteStore::FixDimension(absl::string_view uuid, int64_t dimension) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, BeginWrite());
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(uuid));
  std::string parameters;
  {
    // Finished before the commit, which an open statement would block.
    PM_ASSIGN_OR_RETURN(Statement select,
                        database_->Prepare("SELECT parameters FROM collections WHERE key = ?1"));
    PM_RETURN_IF_ERROR(select.Bind(1, key).Step().status());
    parameters = std::string(select.Bytes(0));
  }
  const absl::StatusOr<int64_t> fixed = server::FixDimension(uuid, dimension, &parameters);
  if (absl::IsDataLoss(fixed.status())) return Damaged(*database_, fixed.status().message());
  PM_RETURN_IF_ERROR(fixed.status());
  PM_ASSIGN_OR_RETURN(Statement update,
                      database_->Prepare("UPDATE collections SET parameters = ?2 WHERE key = ?1"));
  PM_RETURN_IF_ERROR(update.Bind(1, key).BindBlob(2, parameters.data(), parameters.size()).Run());
  PM_RETURN_IF_ERROR(transaction.Commit());
  return fixed;
}

// Items are inserted in several transactions under a reserved key, so that other calls can run in
// between. They become visible when the last transaction creates the collection.
absl::Status SqliteStore::ImportParts(const StoredCollection& collection, GallerySource source) {
  PM_ASSIGN_OR_RETURN(const int64_t key, ReserveKey(collection));
  const absl::Status imported = ImportInto(key, collection, source);
  // If this fails too, the next start removes the rows.
  if (!imported.ok()) RemoveRowsOf(key).IgnoreError();
  return imported;
}

absl::StatusOr<int64_t> SqliteStore::ReserveKey(const StoredCollection& collection) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, BeginWrite());
  PM_RETURN_IF_ERROR(Insert(database_.get(), collection, std::nullopt, 0, 0));
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(collection.parameters.collection_uuid));
  PM_ASSIGN_OR_RETURN(Statement remove,
                      database_->Prepare("DELETE FROM collections WHERE key = ?1"));
  PM_RETURN_IF_ERROR(remove.Bind(1, key).Run());
  PM_RETURN_IF_ERROR(transaction.Commit());
  return key;
}

absl::Status SqliteStore::ImportInto(int64_t key, const StoredCollection& collection,
                                     GallerySource source) {
  uint64_t version = collection.latest_version;
  PM_RETURN_IF_ERROR(source([&](Gallery part) -> absl::Status {
    const std::lock_guard<std::mutex> guard(mutex_);
    PM_ASSIGN_OR_RETURN(Transaction transaction, BeginWrite());
    PM_RETURN_IF_ERROR(InsertItems(database_.get(), key, part, version));
    version += part.ids.size();
    return transaction.Commit();
  }));
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, BeginWrite());
  PM_RETURN_IF_ERROR(Insert(database_.get(), collection, key, collection.items, version));
  return transaction.Commit();
}

absl::StatusOr<uint64_t> SqliteStore::Delete(absl::string_view uuid) {
  PM_ASSIGN_OR_RETURN(const Removed removed, RemoveCollection(uuid));
  // The collection is deleted already. If this fails, the next start removes the rows.
  RemoveRowsOf(removed.key).IgnoreError();
  return removed.items;
}

absl::StatusOr<SqliteStore::Removed> SqliteStore::RemoveCollection(absl::string_view uuid) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, BeginWrite());
  Removed removed;
  PM_ASSIGN_OR_RETURN(removed.key, KeyOf(uuid));
  {
    // Finished before the commit, which an open statement would block.
    PM_ASSIGN_OR_RETURN(Statement count,
                        database_->Prepare("SELECT items FROM collections WHERE key = ?1"));
    PM_RETURN_IF_ERROR(count.Bind(1, removed.key).Step().status());
    removed.items = static_cast<uint64_t>(count.Int(0));
  }
  PM_ASSIGN_OR_RETURN(Statement remove,
                      database_->Prepare("DELETE FROM collections WHERE key = ?1"));
  PM_RETURN_IF_ERROR(remove.Bind(1, removed.key).Run());
  PM_RETURN_IF_ERROR(transaction.Commit());
  return removed;
}

absl::Status SqliteStore::RemoveRowsOf(int64_t key) {
  for (const Table& table : kTables) {
    const std::string part = absl::StrCat(
        "DELETE FROM ", table.name, " WHERE collection = ?1 AND ", table.column, " IN (SELECT ",
        table.column, " FROM ", table.name, " WHERE collection = ?1 LIMIT ", kRowsAtOnce, ")");
    while (true) {
      PM_ASSIGN_OR_RETURN(const int64_t removed, RemovePart(part, key));
      if (removed < kRowsAtOnce) break;
      absl::SleepFor(kYieldTime);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> SqliteStore::RemovePart(const std::string& sql, int64_t key) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, BeginWrite());
  PM_ASSIGN_OR_RETURN(Statement remove, database_->Prepare(sql));
  PM_RETURN_IF_ERROR(remove.Bind(1, key).Run());
  PM_RETURN_IF_ERROR(transaction.Commit());
  return database_->changes();
}

absl::Status SqliteStore::RemoveOrphanRows() {
  for (const Table& table : kTables) {
    PM_ASSIGN_OR_RETURN(int64_t key, NextOrphanKey(table.name, 0));
    while (key != 0) {
      PM_RETURN_IF_ERROR(RemoveRowsOf(key));
      PM_ASSIGN_OR_RETURN(key, NextOrphanKey(table.name, key));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> SqliteStore::NextOrphanKey(absl::string_view table, int64_t after) {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (int64_t key = after;;) {
    PM_ASSIGN_OR_RETURN(Statement next,
                        database_->Prepare(absl::StrCat("SELECT min(collection), min(collection) "
                                                        "IN (SELECT key FROM collections) FROM ",
                                                        table, " WHERE collection > ?1")));
    PM_RETURN_IF_ERROR(next.Bind(1, key).Step().status());
    key = next.Int(0);
    if (key == 0 || next.Int(1) == 0) return key;  // none: null reads as 0
  }
}

}  // namespace privatemail::server
