// SqliteStore: creation and import of collections.
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/parameters_proto.h"
#include "server/store/sqlite/sqlite_store.h"

namespace privatemail::server {
namespace {

using sqlite::Database;
using sqlite::Statement;
using sqlite::Transaction;

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
  v1::PublicParameters proto;
  ToProto(collection.parameters, &proto);
  const std::string parameters = proto.SerializeAsString();
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
  PM_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_.get()));
  PM_RETURN_IF_ERROR(Insert(database_.get(), collection, std::nullopt, 0, 0));
  return transaction.Commit();
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
  PM_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_.get()));
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
    PM_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_.get()));
    PM_RETURN_IF_ERROR(InsertItems(database_.get(), key, part, version));
    version += part.ids.size();
    return transaction.Commit();
  }));
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_.get()));
  PM_RETURN_IF_ERROR(Insert(database_.get(), collection, key, collection.items, version));
  return transaction.Commit();
}

}  // namespace privatemail::server
