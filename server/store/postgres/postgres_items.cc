// PostgresStore: items.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/decode.h"
#include "server/store/postgres/postgres_store.h"
#include "server/store/postgres/rows.h"

namespace privatemail::server {

using postgres::CollectionRow;
using postgres::Parameters;
using postgres::Result;
using postgres::RowLock;
using postgres::Transaction;

namespace {

// The stored form of an item of a batch.
struct Written {
  int32_t label = 0;
  std::string features;
  std::string payload;
  int64_t inserted = 0;
  int64_t version = 0;
  bool changed = false;
};

// A batch by id. Classifies its items in memory, so that any batch takes two statements.
class Batch {
 public:
  // Loads the stored items with the ids of the batch.
  absl::Status Load(Transaction* transaction, int64_t collection,
                    const std::vector<std::string>& ids) {
    PM_ASSIGN_OR_RETURN(
        const Result found,
        transaction->Query("SELECT id, label, features, payload, inserted, version FROM items "
                           "WHERE collection = $1 AND id = ANY($2)",
                           Parameters().Int(collection).ByteArrays(ids)));
    for (int row = 0; row < found.rows(); ++row) {
      items_[std::string(found.Bytes(row, 0))] = {static_cast<int32_t>(found.Int(row, 1)),
                                                  std::string(found.Bytes(row, 2)),
                                                  std::string(found.Bytes(row, 3)),
                                                  found.Int(row, 4),
                                                  found.Int(row, 5),
                                                  false};
    }
    return absl::OkStatus();
  }

  void Write(const Item& item, int64_t* latest_version, UpsertResult* result) {
    const absl::string_view features =
        BytesOf(item.features.data(), static_cast<int64_t>(item.features.size()));
    const auto [place, is_new] = items_.try_emplace(item.id);
    Written& stored = place->second;
    if (!is_new && stored.label == item.label && stored.features == features &&
        stored.payload == item.payload) {
      ++result->unchanged;
      return;
    }
    ++(is_new ? result->inserted : result->updated);
    stored.version = ++*latest_version;
    if (is_new) stored.inserted = stored.version;
    stored.label = item.label;
    stored.features = std::string(features);
    stored.payload = item.payload;
    stored.changed = true;
  }

  absl::Status Save(Transaction* transaction, int64_t collection) const {
    std::vector<std::string> ids;
    std::vector<std::string> features;
    std::vector<std::string> payloads;
    std::vector<int64_t> labels;
    std::vector<int64_t> inserted;
    std::vector<int64_t> versions;
    for (const auto& [id, item] : items_) {
      if (!item.changed) continue;
      ids.push_back(id);
      features.push_back(item.features);
      payloads.push_back(item.payload);
      labels.push_back(item.label);
      inserted.push_back(item.inserted);
      versions.push_back(item.version);
    }
    if (ids.empty()) return absl::OkStatus();
    Parameters parameters;
    parameters.Int(collection).ByteArrays(ids).Ints(labels).ByteArrays(features);
    parameters.ByteArrays(payloads).Ints(inserted).Ints(versions);
    return transaction
        ->Query(
            "INSERT INTO items (collection, id, label, features, payload, inserted, version) "
            "SELECT $1, * FROM unnest($2, $3, $4, $5, $6, $7) "
            "ON CONFLICT (collection, id) DO UPDATE SET label = excluded.label, "
            "features = excluded.features, payload = excluded.payload, "
            "version = excluded.version",
            parameters)
        .status();
  }

 private:
  std::map<std::string, Written> items_;
};

absl::Status PruneTombstones(Transaction* transaction, int64_t key, const DeleteResult& deletion) {
  return transaction
      ->Query(
          "DELETE FROM deletions WHERE collection = $1 AND version IN (SELECT version FROM "
          "deletions WHERE collection = $1 AND version <= $2 ORDER BY version LIMIT $3)",
          Parameters()
              .Int(key)
              .Int(static_cast<int64_t>(deletion.latest_version) - kKeptTombstones)
              .Int(static_cast<int64_t>(deletion.deleted) + kPrunedTombstones))
      .status();
}

// Updates the collection's counts, notifies other daemons and commits.
absl::Status Finish(Transaction* transaction, absl::string_view uuid, int64_t key, uint64_t items,
                    uint64_t latest_version) {
  PM_RETURN_IF_ERROR(transaction
                         ->Query("UPDATE collections SET items = $2, latest_version = $3 "
                                 "WHERE key = $1",
                                 Parameters()
                                     .Int(key)
                                     .Int(static_cast<int64_t>(items))
                                     .Int(static_cast<int64_t>(latest_version)))
                         .status());
  PM_RETURN_IF_ERROR(postgres::Notify(transaction, uuid));
  return transaction->Commit();
}

}  // namespace

absl::StatusOr<UpsertResult> PostgresStore::Upsert(const PublicParameters& parameters,
                                                   absl::Span<const Item> items) {
  UpsertResult result;
  std::vector<const Item*> accepted;
  std::vector<std::string> ids;
  for (size_t i = 0; i < items.size(); ++i) {
    if (const absl::Status status = CheckItem(items[i], parameters); !status.ok()) {
      result.rejected.push_back({i, std::string(status.message())});
      continue;
    }
    accepted.push_back(&items[i]);
    ids.push_back(items[i].id);
  }
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, parameters.collection_uuid,
                                                                RowLock::kChange));
  auto& [transaction, collection] = begun;
  Batch batch;
  PM_RETURN_IF_ERROR(batch.Load(&transaction, collection.key, ids));
  int64_t latest_version = collection.latest_version;
  for (const Item* item : accepted) batch.Write(*item, &latest_version, &result);
  result.items = static_cast<uint64_t>(collection.items) + result.inserted;
  result.latest_version = static_cast<uint64_t>(latest_version);
  if (latest_version == collection.latest_version) return result;  // nothing to write
  PM_RETURN_IF_ERROR(batch.Save(&transaction, collection.key));
  PM_RETURN_IF_ERROR(Finish(&transaction, parameters.collection_uuid, collection.key, result.items,
                            result.latest_version));
  return result;
}

absl::StatusOr<DeleteResult> PostgresStore::DeleteItems(const PublicParameters& parameters,
                                                        absl::Span<const std::string> ids) {
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, parameters.collection_uuid,
                                                                RowLock::kChange));
  auto& [transaction, collection] = begun;
  PM_ASSIGN_OR_RETURN(
      const Result deleted,
      transaction.Query(
          "WITH gone AS (DELETE FROM items WHERE collection = $1 AND id = ANY($2) "
          "RETURNING id, inserted) "
          "INSERT INTO deletions (collection, version, inserted, id) "
          "SELECT $1, $3 + row_number() OVER (ORDER BY id), inserted, id FROM gone "
          "RETURNING version",
          Parameters().Int(collection.key).ByteArrays(ids).Int(collection.latest_version)));
  DeleteResult result;
  result.deleted = static_cast<uint64_t>(deleted.rows());
  result.items = static_cast<uint64_t>(collection.items) - result.deleted;
  result.latest_version = static_cast<uint64_t>(collection.latest_version) + result.deleted;
  if (result.deleted == 0) return result;
  if (parameters.anchor_count == 0) {
    PM_RETURN_IF_ERROR(PruneTombstones(&transaction, collection.key, result));
  }
  PM_RETURN_IF_ERROR(Finish(&transaction, parameters.collection_uuid, collection.key, result.items,
                            result.latest_version));
  return result;
}

absl::StatusOr<std::vector<Item>> PostgresStore::GetItems(const PublicParameters& parameters,
                                                          absl::Span<const std::string> ids) {
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, parameters.collection_uuid,
                                                                RowLock::kNone));
  auto& [transaction, collection] = begun;
  PM_ASSIGN_OR_RETURN(
      const Result found,
      transaction.Query(absl::StrCat("SELECT ", postgres::ItemColumns(true),
                                     " FROM items WHERE collection = $1 AND id = ANY($2)"),
                        Parameters().Int(collection.key).ByteArrays(ids)));
  std::map<absl::string_view, int> rows;
  for (int row = 0; row < found.rows(); ++row) rows[found.Bytes(row, 0)] = row;
  std::vector<Item> items;
  for (const std::string& id : ids) {
    const auto row = rows.find(id);
    if (row == rows.end()) continue;
    PM_ASSIGN_OR_RETURN(items.emplace_back(),
                        postgres::ReadItem(found, row->second, parameters.feature_dim, true));
  }
  return items;
}

absl::Status PostgresStore::ReadChanges(const PublicParameters& parameters, uint64_t after,
                                        ChangesVisitor visit) {
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, parameters.collection_uuid,
                                                                RowLock::kNone));
  auto& [transaction, collection] = begun;
  PM_RETURN_IF_ERROR(postgres::FollowIndexes(&transaction));
  ItemChanges changes;
  changes.collection = collection.key;
  changes.items = static_cast<uint64_t>(collection.items);
  changes.latest_version = static_cast<uint64_t>(collection.latest_version);
  auto last = static_cast<int64_t>(after);
  if (after > 0) {
    PM_ASSIGN_OR_RETURN(
        const Result gone,
        transaction.Query("SELECT DISTINCT id FROM deletions d WHERE collection = $1 AND version > "
                          "$2 AND NOT EXISTS (SELECT 1 FROM items WHERE collection = $1 AND id = "
                          "d.id)",
                          Parameters().Int(collection.key).Int(last)));
    for (int row = 0; row < gone.rows(); ++row) changes.deleted.emplace_back(gone.Bytes(row, 0));
  }
  const int64_t part_rows = GalleryPartRows(parameters.feature_dim);
  for (bool any = false;; any = true) {
    PM_ASSIGN_OR_RETURN(
        const Result chunk,
        transaction.Query(absl::StrCat("SELECT ", postgres::ItemColumns(true),
                                       " FROM items WHERE collection = $1 AND "
                                       "version > $2 ORDER BY version LIMIT $3"),
                          Parameters().Int(collection.key).Int(last).Int(part_rows)));
    if (chunk.rows() == 0 && any) return absl::OkStatus();
    std::vector<Item> part;
    for (int row = 0; row < chunk.rows(); ++row) {
      PM_ASSIGN_OR_RETURN(part.emplace_back(),
                          postgres::ReadItem(chunk, row, parameters.feature_dim, true));
    }
    if (!part.empty()) last = static_cast<int64_t>(part.back().version);
    PM_RETURN_IF_ERROR(visit(changes, std::move(part)));
    if (chunk.rows() < part_rows) return absl::OkStatus();
  }
}

absl::Status PostgresStore::ScanItems(const PublicParameters& parameters, absl::string_view after,
                                      int64_t limit, bool with_features,
                                      absl::FunctionRef<bool(Item)> visit) {
  constexpr int64_t kChunkRows = 1000;
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, parameters.collection_uuid,
                                                                RowLock::kNone));
  auto& [transaction, collection] = begun;
  std::string last(after);
  while (limit > 0) {
    const int64_t wanted = std::min(limit, kChunkRows);
    PM_ASSIGN_OR_RETURN(
        const Result chunk,
        transaction.Query(absl::StrCat("SELECT ", postgres::ItemColumns(with_features),
                                       " FROM items WHERE collection = $1 AND id > $2 "
                                       "ORDER BY id LIMIT $3"),
                          Parameters().Int(collection.key).Bytes(last).Int(wanted)));
    for (int row = 0; row < chunk.rows(); ++row) {
      PM_ASSIGN_OR_RETURN(Item item,
                          postgres::ReadItem(chunk, row, parameters.feature_dim, with_features));
      last = item.id;
      if (!visit(std::move(item))) return absl::OkStatus();
    }
    if (chunk.rows() < wanted) return absl::OkStatus();
    limit -= wanted;
  }
  return absl::OkStatus();
}

}  // namespace privatemail::server
