// How collections come into SqliteStore.
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite/item_writer.h"
#include "server/store/sqlite/sqlite_store.h"

namespace privatemail {
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

// Within the caller's transaction. latest_version: of the collection before its first item.
absl::Status Insert(Database* database, const StoredCollection& collection,
                    uint64_t latest_version) {
  PM_RETURN_IF_ERROR(CheckFree(database, "name", collection.name));
  PM_RETURN_IF_ERROR(CheckFree(database, "uuid", collection.parameters.collection_uuid));
  v1::PublicParameters proto;
  ToProto(collection.parameters, &proto);
  const std::string parameters = proto.SerializeAsString();
  const Anchors& anchors = collection.anchors;
  PM_ASSIGN_OR_RETURN(Statement insert,
                      database->Prepare("INSERT INTO collections (uuid, name, parameters, "
                                        "anchor_features, anchor_labels, latest_version) "
                                        "VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
  insert.BindText(1, collection.parameters.collection_uuid).BindText(2, collection.name);
  insert.BindBlob(3, parameters.data(), parameters.size());
  insert.BindBlob(4, anchors.features.data(),
                  static_cast<size_t>(anchors.features.size()) * sizeof(float));
  insert.BindBlob(5, anchors.labels.data(), anchors.labels.size() * sizeof(int32_t));
  return insert.Bind(6, static_cast<int64_t>(latest_version)).Run();
}

}  // namespace

absl::Status SqliteStore::Create(const StoredCollection& collection) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_.get()));
  PM_RETURN_IF_ERROR(Insert(database_.get(), collection, /*latest_version=*/0));
  return transaction.Commit();
}

absl::Status SqliteStore::ImportParts(const StoredCollection& collection, GallerySource source) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_.get()));
  PM_RETURN_IF_ERROR(Insert(database_.get(), collection, collection.latest_version));
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(collection.parameters.collection_uuid));
  PM_ASSIGN_OR_RETURN(ItemWriter writer, ItemWriter::Prepare(database_.get(), key));
  UpsertResult ignored;
  PM_RETURN_IF_ERROR(source([&](Gallery part) -> absl::Status {
    for (size_t row = 0; row < part.ids.size(); ++row) {
      PM_RETURN_IF_ERROR(writer.Write(ItemOf(part, row), &ignored));
    }
    return absl::OkStatus();
  }));
  PM_RETURN_IF_ERROR(writer.Finish());
  return transaction.Commit();
}

}  // namespace privatemail
