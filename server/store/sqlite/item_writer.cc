#include "server/store/sqlite/item_writer.h"

#include <utility>

#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "server/store/decode.h"

namespace privatemail::server {

using sqlite::Database;
using sqlite::Statement;

ItemWriter::ItemWriter(int64_t key, Statement find, Statement insert, Statement update,
                       Statement erase, Statement remember, Statement finish)
    : key_(key),
      find_(std::move(find)),
      insert_(std::move(insert)),
      update_(std::move(update)),
      erase_(std::move(erase)),
      remember_(std::move(remember)),
      finish_(std::move(finish)) {}

absl::StatusOr<ItemWriter> ItemWriter::Prepare(Database* database, int64_t key) {
  PM_ASSIGN_OR_RETURN(Statement find,
                      database->Prepare("SELECT rowid, label, features, payload, inserted FROM "
                                        "items WHERE collection = ?1 AND id = ?2"));
  PM_ASSIGN_OR_RETURN(Statement insert,
                      database->Prepare("INSERT INTO items (collection, id, label, features, "
                                        "payload, inserted, version) "
                                        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)"));
  PM_ASSIGN_OR_RETURN(Statement update,
                      database->Prepare("UPDATE items SET label = ?2, features = ?3, "
                                        "payload = ?4, version = ?5 WHERE rowid = ?1"));
  PM_ASSIGN_OR_RETURN(Statement erase, database->Prepare("DELETE FROM items WHERE rowid = ?1"));
  PM_ASSIGN_OR_RETURN(Statement remember,
                      database->Prepare("INSERT INTO deletions (collection, version, inserted, id) "
                                        "VALUES (?1, ?2, ?3, ?4)"));
  PM_ASSIGN_OR_RETURN(Statement finish,
                      database->Prepare("UPDATE collections SET items = ?2, latest_version = ?3 "
                                        "WHERE key = ?1"));
  ItemWriter writer(key, std::move(find), std::move(insert), std::move(update), std::move(erase),
                    std::move(remember), std::move(finish));
  PM_ASSIGN_OR_RETURN(
      Statement counts,
      database->Prepare("SELECT items, latest_version FROM collections WHERE key = ?1"));
  PM_RETURN_IF_ERROR(counts.Bind(1, key).Step().status());
  writer.items_ = counts.Int(0);
  writer.latest_version_ = counts.Int(1);
  return writer;
}

absl::Status ItemWriter::Write(const Item& item, UpsertResult* result) {
  const absl::string_view features =
      BytesOf(item.features.data(), static_cast<int64_t>(item.features.size()));
  find_.Reset();
  PM_ASSIGN_OR_RETURN(const bool found, find_.Bind(1, key_).BindText(2, item.id).Step());
  if (!found) {
    ++result->inserted;
    ++items_;
    insert_.Bind(1, key_).BindText(2, item.id).Bind(3, int64_t{item.label});
    insert_.BindBlob(4, features.data(), features.size()).BindText(5, item.payload);
    return insert_.Bind(6, ++latest_version_).Run();
  }
  if (find_.Int(1) == item.label && find_.Bytes(2) == features && find_.Bytes(3) == item.payload) {
    ++result->unchanged;
    return absl::OkStatus();
  }
  ++result->updated;
  update_.Bind(1, find_.Int(0)).Bind(2, int64_t{item.label});
  update_.BindBlob(3, features.data(), features.size()).BindText(4, item.payload);
  return update_.Bind(5, ++latest_version_).Run();
}

absl::StatusOr<bool> ItemWriter::Erase(const std::string& id) {
  find_.Reset();
  PM_ASSIGN_OR_RETURN(const bool found, find_.Bind(1, key_).BindText(2, id).Step());
  if (!found) return false;
  const int64_t row = find_.Int(0);
  const int64_t inserted = find_.Int(4);
  find_.Reset();  // its row is about to go
  --items_;
  PM_RETURN_IF_ERROR(erase_.Bind(1, row).Run());
  remember_.Bind(1, key_).Bind(2, ++latest_version_).Bind(3, inserted);
  PM_RETURN_IF_ERROR(remember_.BindText(4, id).Run());
  return true;
}

absl::Status ItemWriter::Finish() {
  find_.Reset();  // an open statement would hold the commit up
  return finish_.Bind(1, key_).Bind(2, items_).Bind(3, latest_version_).Run();
}

}  // namespace privatemail::server
