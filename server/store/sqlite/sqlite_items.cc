// SqliteStore: items.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite/item_writer.h"
#include "server/store/sqlite/rows.h"
#include "server/store/sqlite/sqlite_store.h"

namespace privatemail::server {
namespace {

using sqlite::Statement;
using sqlite::Transaction;

}  // namespace

absl::StatusOr<UpsertResult> SqliteStore::Upsert(const PublicParameters& parameters,
                                                 absl::Span<const Item> items) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, BeginWrite());
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(parameters.collection_uuid));
  UpsertResult result;
  PM_ASSIGN_OR_RETURN(ItemWriter writer, ItemWriter::Prepare(database_.get(), key));
  for (size_t i = 0; i < items.size(); ++i) {
    if (const absl::Status status = CheckItem(items[i], parameters); !status.ok()) {
      result.rejected.push_back({i, std::string(status.message())});
      continue;
    }
    PM_RETURN_IF_ERROR(writer.Write(items[i], &result));
  }
  PM_RETURN_IF_ERROR(writer.Finish());
  PM_RETURN_IF_ERROR(transaction.Commit());
  result.items = writer.items();
  result.latest_version = writer.latest_version();
  return result;
}

absl::StatusOr<DeleteResult> SqliteStore::DeleteItems(const PublicParameters& parameters,
                                                      absl::Span<const std::string> ids) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, BeginWrite());
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(parameters.collection_uuid));
  DeleteResult result;
  PM_ASSIGN_OR_RETURN(ItemWriter writer, ItemWriter::Prepare(database_.get(), key));
  for (const std::string& id : ids) {
    PM_ASSIGN_OR_RETURN(const bool erased, writer.Erase(id));
    if (erased) ++result.deleted;
  }
  PM_RETURN_IF_ERROR(writer.Finish());
  PM_RETURN_IF_ERROR(transaction.Commit());
  result.items = writer.items();
  result.latest_version = writer.latest_version();
  return result;
}

absl::StatusOr<std::vector<Item>> SqliteStore::GetItems(const PublicParameters& parameters,
                                                        absl::Span<const std::string> ids) {
  PM_ASSIGN_OR_RETURN(const Reader reader, BeginRead());
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(reader.get(), parameters.collection_uuid));
  PM_ASSIGN_OR_RETURN(Statement select,
                      reader->Prepare(absl::StrCat("SELECT ", ItemColumns(true),
                                                   " FROM items WHERE collection = ?1 "
                                                   "AND id = ?2")));
  std::vector<Item> items;
  for (const std::string& id : ids) {
    select.Reset();
    PM_ASSIGN_OR_RETURN(const bool found, select.Bind(1, key).BindText(2, id).Step());
    if (!found) continue;
    PM_ASSIGN_OR_RETURN(items.emplace_back(),
                        ReadItem(*reader.get(), select, parameters.feature_dim, true));
  }
  return items;
}

absl::Status SqliteStore::ScanItems(const PublicParameters& parameters, absl::string_view after,
                                    int64_t limit, bool with_features,
                                    absl::FunctionRef<bool(Item)> visit) {
  PM_ASSIGN_OR_RETURN(const Reader reader, BeginRead());
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(reader.get(), parameters.collection_uuid));
  PM_ASSIGN_OR_RETURN(Statement select,
                      reader->Prepare(absl::StrCat(
                          "SELECT ", ItemColumns(with_features),
                          " FROM items WHERE collection = ?1 AND id > ?2 ORDER BY id LIMIT ?3")));
  select.Bind(1, key).BindText(2, after).Bind(3, limit);
  while (true) {
    PM_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return absl::OkStatus();
    PM_ASSIGN_OR_RETURN(Item item,
                        ReadItem(*reader.get(), select, parameters.feature_dim, with_features));
    if (!visit(std::move(item))) return absl::OkStatus();
  }
}

absl::StatusOr<std::optional<std::vector<DeletedItem>>> SqliteStore::DeletedSince(
    const PublicParameters& parameters, uint64_t embedding_version, uint64_t after) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(parameters.collection_uuid));
  PM_ASSIGN_OR_RETURN(const EmbeddingVersion versions, VersionOf(database_.get(), key));
  if (static_cast<uint64_t>(versions.version) != embedding_version) return std::nullopt;
  return ReadDeletedSince(database_.get(), key, static_cast<uint64_t>(versions.items_version),
                          after);
}

absl::StatusOr<ChangesSinceEmbedding> SqliteStore::CountChanges(
    const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(const Reader reader, BeginRead());
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(reader.get(), parameters.collection_uuid));
  PM_ASSIGN_OR_RETURN(const EmbeddingVersion versions, VersionOf(reader.get(), key));
  PM_ASSIGN_OR_RETURN(Statement count,
                      reader->Prepare("SELECT count(*) FILTER (WHERE inserted > ?2), "
                                      "count(*) FILTER (WHERE inserted <= ?2) "
                                      "FROM items WHERE collection = ?1 AND version > ?2"));
  PM_RETURN_IF_ERROR(count.Bind(1, key).Bind(2, versions.items_version).Step().status());
  ChangesSinceEmbedding changes;
  changes.inserted = static_cast<uint64_t>(count.Int(0));
  changes.updated = static_cast<uint64_t>(count.Int(1));
  PM_ASSIGN_OR_RETURN(
      const std::vector<DeletedItem> deleted,
      ReadDeletedSince(reader.get(), key, static_cast<uint64_t>(versions.items_version), 0));
  changes.deleted = deleted.size();
  return changes;
}

}  // namespace privatemail::server
