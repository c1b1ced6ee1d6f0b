// SqliteStore: items.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite/item_writer.h"
#include "server/store/sqlite/rows.h"
#include "server/store/sqlite/sqlite_store.h"

namespace privatemail::server {
namespace {

using sqlite::Database;
using sqlite::Statement;
using sqlite::Transaction;

// `added`: tombstones of the deletion.
absl::Status PruneTombstones(Database* database, int64_t key, uint64_t latest_version,
                             int64_t added) {
  PM_ASSIGN_OR_RETURN(
      Statement prune,
      database->Prepare("DELETE FROM deletions WHERE collection = ?1 AND version IN (SELECT "
                        "version FROM deletions WHERE collection = ?1 AND version <= ?2 "
                        "ORDER BY version LIMIT ?3)"));
  prune.Bind(1, key).Bind(2, static_cast<int64_t>(latest_version) - kKeptTombstones);
  return prune.Bind(3, added + kPrunedTombstones).Run();
}

// Ids that were deleted after a version and do not exist.
absl::StatusOr<std::vector<std::string>> ReadGone(Database* database, int64_t key, uint64_t after) {
  PM_ASSIGN_OR_RETURN(
      Statement select,
      database->Prepare("SELECT DISTINCT id FROM deletions d WHERE collection = ?1 AND version > "
                        "?2 AND NOT EXISTS (SELECT 1 FROM items WHERE collection = ?1 AND id = "
                        "d.id)"));
  select.Bind(1, key).Bind(2, static_cast<int64_t>(after));
  std::vector<std::string> ids;
  while (true) {
    PM_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return ids;
    ids.emplace_back(select.Bytes(0));
  }
}

// The parts of Store::ReadChanges.
absl::Status ReadChangedItems(Database* database, int64_t feature_dim, uint64_t after,
                              const ItemChanges& changes, Store::ChangesVisitor visit) {
  PM_ASSIGN_OR_RETURN(Statement select,
                      database->Prepare(absl::StrCat("SELECT ", ItemColumns(true),
                                                     " FROM items WHERE collection "
                                                     "= ?1 AND version > ?2 ORDER BY version")));
  select.Bind(1, changes.collection).Bind(2, static_cast<int64_t>(after));
  const auto part_rows = static_cast<size_t>(GalleryPartRows(feature_dim));
  std::vector<Item> part;
  for (bool any = false;; any = true) {
    while (part.size() < part_rows) {
      PM_ASSIGN_OR_RETURN(const bool more, select.Step());
      if (!more) return part.empty() && any ? absl::OkStatus() : visit(changes, std::move(part));
      PM_ASSIGN_OR_RETURN(part.emplace_back(), ReadItem(*database, select, feature_dim, true));
    }
    PM_RETURN_IF_ERROR(visit(changes, std::exchange(part, {})));
  }
}

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
  if (parameters.anchor_count == 0) {
    PM_RETURN_IF_ERROR(PruneTombstones(database_.get(), key, writer.latest_version(),
                                       static_cast<int64_t>(result.deleted)));
  }
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

absl::Status SqliteStore::ReadChanges(const PublicParameters& parameters, uint64_t after,
                                      ChangesVisitor visit) {
  PM_ASSIGN_OR_RETURN(const Reader reader, BeginRead());
  ItemChanges changes;
  PM_ASSIGN_OR_RETURN(changes.collection, KeyOf(reader.get(), parameters.collection_uuid));
  PM_ASSIGN_OR_RETURN(
      Statement counts,
      reader->Prepare("SELECT items, latest_version FROM collections WHERE key = ?1"));
  PM_RETURN_IF_ERROR(counts.Bind(1, changes.collection).Step().status());
  changes.items = static_cast<uint64_t>(counts.Int(0));
  changes.latest_version = static_cast<uint64_t>(counts.Int(1));
  if (after > 0) {
    PM_ASSIGN_OR_RETURN(changes.deleted, ReadGone(reader.get(), changes.collection, after));
  }
  return ReadChangedItems(reader.get(), parameters.feature_dim, after, changes, visit);
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
