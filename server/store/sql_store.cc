#include "server/store/sql_store.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/lattice/scores.h"
#include "server/store/decode.h"

namespace privatemail::server {
namespace {

// Rows per statement, which bounds its memory and time.
constexpr int64_t kChunkRows = 5000;

constexpr char kCollectionColumns[] =
    "name, parameters, anchor_features, anchor_labels, items, latest_version, key";
constexpr char kItemColumns[] = "id, label, payload, version, features";
constexpr char kItemColumnsWithoutFeatures[] = "id, label, payload, version";

// Items that existed at `items_version` and were deleted later, and after version `after`.
absl::StatusOr<std::vector<DeletedItem>> ReadDeletedSince(SqlSession* session, int64_t collection,
                                                          int64_t items_version, int64_t after) {
  std::vector<DeletedItem> items;
  PM_RETURN_IF_ERROR(session->Query(
      "SELECT id, version FROM deletions WHERE collection = $1 AND "
      "version > $3 AND inserted <= $2 ORDER BY version",
      {collection, items_version, std::max(items_version, after)}, [&](const SqlRow& row) {
        items.push_back({row.Text(0), row.Count(1)});
      }));
  return items;
}

// The stored form of an item of a batch.
struct Written {
  int32_t label = 0;
  std::string features;
  std::string payload;
  int64_t inserted = 0;
  int64_t version = 0;
  bool changed = false;
};

// Columns of the table items.
struct ItemColumns {
  std::vector<std::string> ids, features, payloads;
  std::vector<int64_t> labels, inserted, versions;

  std::vector<SqlValue> values() const {
    return {SqlUtf8s{ids},      SqlInts(labels),   SqlByteses{features},
            SqlUtf8s{payloads}, SqlInts(inserted), SqlInts(versions)};
  }
};
constexpr char kWrittenColumns[] = "id, label, features, payload, inserted, version";
constexpr char kReplaceItem[] =
    " ON CONFLICT (collection, id) DO UPDATE SET label = excluded.label, "
    "features = excluded.features, payload = excluded.payload, version = excluded.version";

// A build would replace an embedding of later items, of this version.
absl::Status LaterEmbeddingError(int64_t items_version) {
  return absl::AbortedError(absl::StrCat("an embedding of later items (version ", items_version,
                                         ") was saved during this build and stays"));
}

absl::string_view FeatureBytes(const Item& item) {
  return BytesOf(item.features.data(), std::ssize(item.features));
}

void Write(const Item& item, int64_t* latest_version, std::map<std::string, Written>* batch,
           UpsertResult* result) {
  const auto [place, is_new] = batch->try_emplace(item.id);
  Written& stored = place->second;
  if (!is_new && stored.label == item.label && stored.features == FeatureBytes(item) &&
      stored.payload == item.payload) {
    ++result->unchanged;
    return;
  }
  ++(is_new ? result->inserted : result->updated);
  const bool lost_payload = item.payload.empty() && !stored.payload.empty();
  const bool lost_label = item.label == kNoLabel && stored.label != kNoLabel;
  if (!is_new && (lost_payload || lost_label)) ++result->stripped;
  stored.version = ++*latest_version;
  if (is_new) stored.inserted = stored.version;
  stored.label = item.label;
  stored.features = std::string(FeatureBytes(item));
  stored.payload = item.payload;
  stored.changed = true;
}

}  // namespace

absl::StatusOr<int64_t> SqlSession::QueryInt(const std::string& sql,
                                             std::initializer_list<SqlValue> values) {
  int64_t value = 0;
  PM_RETURN_IF_ERROR(Query(sql, values, [&](const SqlRow& row) { value = row.Int(0); }));
  return value;
}

absl::StatusOr<SqlStore::CollectionRow> SqlStore::FindCollection(SqlSession* session,
                                                                 absl::string_view uuid,
                                                                 Lock lock) const {
  std::optional<CollectionRow> found;
  PM_RETURN_IF_ERROR(session->Query(
      absl::StrCat("SELECT key, items, latest_version FROM collections WHERE uuid = $1",
                   LockClause(lock)),
      {SqlText{uuid}}, [&](const SqlRow& row) {
        found = {row.Int(0), row.Int(1), row.Int(2)};
      }));
  if (found.has_value()) return *found;
  return NoSuchCollection(uuid);
}

absl::StatusOr<SqlStore::CollectionSession> SqlStore::BeginWith(absl::string_view uuid, Lock lock) {
  CollectionSession begun;
  PM_ASSIGN_OR_RETURN(begun.session, Begin(/*writes=*/lock != Lock::kRead));
  PM_ASSIGN_OR_RETURN(begun.collection, FindCollection(begun.session.get(), uuid, lock));
  return begun;
}

absl::StatusOr<SqlStore::EmbeddingRow> SqlStore::FindEmbedding(SqlSession* session,
                                                               int64_t collection,
                                                               absl::string_view table) {
  EmbeddingRow found;
  PM_RETURN_IF_ERROR(session->Query(
      absl::StrCat("SELECT version, items_version, key FROM ", table, " WHERE collection = $1"),
      {collection}, [&](const SqlRow& row) {
        found = {{row.Int(0), row.Int(1)}, row.Int(2)};
      }));
  return found;
}

absl::StatusOr<int64_t> SqlStore::FindEmbeddingKey(SqlSession* session, int64_t collection,
                                                   const EmbeddingVersion& of) {
  PM_ASSIGN_OR_RETURN(const EmbeddingRow stored, FindEmbedding(session, collection));
  if (stored == of) return stored.key;
  return absl::AbortedError(
      absl::StrCat("the collection has another embedding, of version ", stored.version));
}

absl::StatusOr<StoredCollection> SqlStore::ReadCollection(const SqlRow& row) const {
  absl::StatusOr<StoredCollection> collection =
      DecodeCollection(row.Bytes(0), row.Bytes(1), row.Bytes(2), row.Bytes(3));
  PM_RETURN_IF_ERROR(Place(collection.status()));
  collection->items = row.Count(4);
  collection->latest_version = row.Count(5);
  collection->key = row.Int(6);
  return collection;
}

absl::StatusOr<std::vector<StoredCollection>> SqlStore::LoadCollections() {
  PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/false));
  std::vector<StoredCollection> collections;
  PM_RETURN_IF_ERROR(
      session->Query(absl::StrCat("SELECT ", kCollectionColumns, " FROM collections ORDER BY name"),
                     {}, [&](const SqlRow& row) -> absl::Status {
                       PM_ASSIGN_OR_RETURN(collections.emplace_back(), ReadCollection(row));
                       return absl::OkStatus();
                     }));
  return collections;
}

absl::StatusOr<StoredCollection> SqlStore::LoadCollection(absl::string_view uuid) {
  PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/false));
  absl::StatusOr<StoredCollection> collection = NoSuchCollection(uuid);
  PM_RETURN_IF_ERROR(session->Query(
      absl::StrCat("SELECT ", kCollectionColumns, " FROM collections WHERE uuid = $1"),
      {SqlText{uuid}}, [&](const SqlRow& row) { collection = ReadCollection(row); }));
  return collection;
}

absl::StatusOr<std::vector<CollectionState>> SqlStore::ListStates() {
  PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/false));
  std::vector<CollectionState> states;
  PM_RETURN_IF_ERROR(session->Query(
      "SELECT c.uuid, c.name, c.key, c.items, c.latest_version, coalesce(e.version, 0), "
      "length(c.parameters) FROM collections c LEFT JOIN embeddings e ON e.collection = c.key "
      "ORDER BY c.name",
      {}, [&](const SqlRow& row) {
        states.push_back({row.Text(0), row.Text(1), row.Int(2), row.Count(3), row.Count(4),
                          row.Count(5), row.Count(6)});
      }));
  return states;
}

absl::StatusOr<int64_t> SqlStore::InsertCollection(SqlSession* session,
                                                   const StoredCollection& collection,
                                                   uint64_t items, uint64_t latest_version) {
  const std::string& uuid = collection.parameters.collection_uuid;
  const std::string parameters = EncodeParameters(collection.parameters);
  const Anchors& anchors = collection.anchors;
  // A concurrent creation of the same name waits here for the outcome of the first.
  PM_ASSIGN_OR_RETURN(
      const int64_t key,
      session->QueryInt(
          "INSERT INTO collections (uuid, name, parameters, anchor_features, anchor_labels, "
          "items, latest_version) VALUES ($1, $2, $3, $4, $5, $6, $7) "
          "ON CONFLICT DO NOTHING RETURNING key",
          {SqlText{uuid}, SqlText{collection.name}, SqlBytes{parameters},
           SqlBytes{BytesOf(anchors.features.data(), anchors.features.size())},
           SqlBytes{BytesOf(anchors.labels.data(), std::ssize(anchors.labels))},
           static_cast<int64_t>(items), static_cast<int64_t>(latest_version)}));
  if (key != 0) return key;
  // The one of that name may have been deleted since.
  PM_ASSIGN_OR_RETURN(
      const int64_t is_of_uuid,
      session->QueryInt("SELECT count(*) FROM collections WHERE uuid = $1 AND name <> $2",
                        {SqlText{uuid}, SqlText{collection.name}}));
  return absl::AlreadyExistsError(
      absl::StrCat("collection ", is_of_uuid != 0 ? uuid : collection.name, " exists already"));
}

absl::Status SqlStore::Create(const StoredCollection& collection) {
  PM_ASSIGN_OR_RETURN(const auto session, Begin(/*writes=*/true));
  PM_RETURN_IF_ERROR(InsertCollection(session.get(), collection, 0, 0).status());
  PM_RETURN_IF_ERROR(Notify(session.get(), collection.parameters.collection_uuid));
  return session->Commit();
}

absl::Status SqlStore::ChangeParameters(absl::string_view uuid, ChangeFunction change) {
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(uuid, Lock::kChange));
  const auto& [session, collection] = begun;
  PublicParameters parameters;
  PM_RETURN_IF_ERROR(session->Query("SELECT parameters FROM collections WHERE key = $1",
                                    {collection.key}, [&](const SqlRow& row) -> absl::Status {
                                      auto decoded = DecodeParameters(uuid, row.Bytes(0));
                                      PM_RETURN_IF_ERROR(Place(decoded.status()));
                                      parameters = *std::move(decoded);
                                      return absl::OkStatus();
                                    }));
  PM_ASSIGN_OR_RETURN(const bool is_changed, change(&parameters, collection.items));
  if (!is_changed) return absl::OkStatus();
  const std::string bytes = EncodeParameters(parameters);
  PM_RETURN_IF_ERROR(session->Run("UPDATE collections SET parameters = $2 WHERE key = $1",
                                  {collection.key, SqlBytes{bytes}}));
  PM_RETURN_IF_ERROR(Notify(session.get(), uuid));
  return session->Commit();
}

absl::StatusOr<int64_t> SqlStore::FixDimension(absl::string_view uuid, int64_t dimension) {
  int64_t fixed = 0;
  PM_RETURN_IF_ERROR(
      ChangeParameters(uuid, [&](PublicParameters* parameters, int64_t) -> absl::StatusOr<bool> {
        fixed = parameters->feature_dim;
        if (fixed > 0) return false;
        PM_RETURN_IF_ERROR(CheckIntegerBetween("dimension", dimension, 1, lattice::kMaxDimensions));
        parameters->feature_dim = fixed = dimension;
        return true;
      }));
  return fixed;
}

absl::Status SqlStore::AppendClassNames(absl::string_view uuid,
                                        const std::vector<std::string>& names) {
  return ChangeParameters(
      uuid, [&](PublicParameters* parameters, int64_t items) -> absl::StatusOr<bool> {
        const std::vector<std::string> former = std::exchange(parameters->class_names, names);
        if (former.size() > names.size() ||
            !std::equal(former.begin(), former.end(), names.begin())) {
          return absl::AbortedError(absl::StrCat(
              "class_names must begin with the ", former.size(),
              " names that the collection has, but another upload has appended others: "
              "fetch them again"));
        }
        PM_RETURN_IF_ERROR(Validate(*parameters));
        if (former.empty() && !names.empty() && items > 0) {
          return InvalidField("class_names",
                              "must be absent, since the labels of the collection's items have no "
                              "names");
        }
        return names.size() > former.size();
      });
}

absl::Status SqlStore::Finish(SqlSession* session, absl::string_view uuid, int64_t key,
                              uint64_t items, uint64_t latest_version) {
  PM_RETURN_IF_ERROR(
      session->Run("UPDATE collections SET items = $2, latest_version = $3 WHERE key = $1",
                   {key, static_cast<int64_t>(items), static_cast<int64_t>(latest_version)}));
  PM_RETURN_IF_ERROR(Notify(session, uuid));
  return session->Commit();
}

absl::StatusOr<UpsertResult> SqlStore::Upsert(const PublicParameters& parameters,
                                              absl::Span<const Item> items) {
  std::vector<std::string> ids;
  for (const Item& item : items) ids.push_back(item.id);
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, Lock::kChange));
  const auto& [session, collection] = begun;
  std::map<std::string, Written> batch;
  PM_RETURN_IF_ERROR(QueryByIds(
      session.get(),
      absl::StrCat("SELECT ", kWrittenColumns, " FROM items WHERE collection = $1 AND id"), "",
      collection.key, ids, [&](const SqlRow& row) {
        batch[row.Text(0)] = {static_cast<int32_t>(row.Int(1)),
                              row.Text(2),
                              row.Text(3),
                              row.Int(4),
                              row.Int(5),
                              false};
        return absl::OkStatus();
      }));
  UpsertResult result;
  int64_t latest_version = collection.latest_version;
  for (const Item& item : items) Write(item, &latest_version, &batch, &result);
  result.items = static_cast<uint64_t>(collection.items) + result.inserted;
  result.latest_version = static_cast<uint64_t>(latest_version);
  if (latest_version == collection.latest_version) return result;  // nothing to write
  ItemColumns columns;
  for (auto& [id, item] : batch) {
    if (!item.changed) continue;
    columns.ids.push_back(id);
    columns.features.push_back(std::move(item.features));
    columns.payloads.push_back(std::move(item.payload));
    columns.labels.push_back(item.label);
    columns.inserted.push_back(item.inserted);
    columns.versions.push_back(item.version);
  }
  PM_RETURN_IF_ERROR(InsertRows(session.get(), "items", collection.key, kWrittenColumns,
                                columns.values(), kReplaceItem));
  PM_RETURN_IF_ERROR(Finish(session.get(), parameters.collection_uuid, collection.key, result.items,
                            result.latest_version));
  return result;
}

// In statements of about a megabyte.
absl::Status SqlStore::InsertItems(SqlSession* session, int64_t key, const Gallery& gallery,
                                   uint64_t version) {
  constexpr size_t kBytes = size_t{1} << 20;
  for (size_t row = 0; row < gallery.ids.size();) {
    ItemColumns columns;
    for (size_t bytes = 0; row < gallery.ids.size() && bytes < kBytes; ++row) {
      const auto features = gallery.features.row(static_cast<Eigen::Index>(row));
      columns.ids.push_back(gallery.ids[row]);
      columns.features.emplace_back(BytesOf(features.data(), features.size()));
      columns.payloads.push_back(gallery.payloads[row]);
      columns.labels.push_back(gallery.labels[row]);
      columns.versions.push_back(static_cast<int64_t>(++version));
      bytes += columns.ids.back().size() + columns.features.back().size() +
               columns.payloads.back().size();
    }
    columns.inserted = columns.versions;
    PM_RETURN_IF_ERROR(InsertRows(session, "items", key, kWrittenColumns, columns.values()));
  }
  return absl::OkStatus();
}

absl::StatusOr<DeleteResult> SqlStore::DeleteItems(const PublicParameters& parameters,
                                                   absl::Span<const std::string> ids) {
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, Lock::kChange));
  const auto& [session, collection] = begun;
  std::vector<std::string> deleted;
  std::vector<int64_t> inserted, versions;
  int64_t version = collection.latest_version;
  PM_RETURN_IF_ERROR(QueryByIds(session.get(), "DELETE FROM items WHERE collection = $1 AND id",
                                " RETURNING id, inserted", collection.key, ids,
                                [&](const SqlRow& row) {
                                  deleted.push_back(row.Text(0));
                                  inserted.push_back(row.Int(1));
                                  versions.push_back(++version);
                                  return absl::OkStatus();
                                }));
  DeleteResult result;
  result.deleted = deleted.size();
  const std::set<absl::string_view> found(deleted.begin(), deleted.end());
  for (const std::string& id : ids) {
    if (result.first_missing.size() == kMaxMissingListed) break;
    if (!found.contains(id)) result.first_missing.push_back(id);
  }
  result.items = static_cast<uint64_t>(collection.items) - result.deleted;
  result.latest_version = static_cast<uint64_t>(version);
  if (deleted.empty()) return result;
  PM_RETURN_IF_ERROR(InsertRows(session.get(), "deletions", collection.key, "version, inserted, id",
                                {SqlInts(versions), SqlInts(inserted), SqlUtf8s{deleted}}));
  if (parameters.anchor_count == 0) {  // no embedding prunes tombstones
    PM_RETURN_IF_ERROR(session->Run(
        "DELETE FROM deletions WHERE collection = $1 AND version IN (SELECT version FROM "
        "deletions WHERE collection = $1 AND version <= $2 ORDER BY version LIMIT $3)",
        {collection.key, version - kKeptTombstones, std::ssize(deleted) + kPrunedTombstones}));
  }
  PM_RETURN_IF_ERROR(Finish(session.get(), parameters.collection_uuid, collection.key, result.items,
                            result.latest_version));
  return result;
}

absl::Status SqlStore::DecodeFeatures(absl::string_view id, absl::string_view blob,
                                      int64_t feature_dim, float* values) const {
  return Place(DecodeValues(absl::StrCat("features of item ", id), blob, 1, feature_dim, values));
}

absl::StatusOr<Item> SqlStore::ReadItem(const SqlRow& row, int64_t feature_dim,
                                        bool with_features) const {
  Item item;
  item.id = row.Text(0);
  item.label = static_cast<int32_t>(row.Int(1));
  item.payload = row.Text(2);
  item.version = row.Count(3);
  if (!with_features) return item;
  item.features.resize(static_cast<size_t>(feature_dim));
  PM_RETURN_IF_ERROR(DecodeFeatures(item.id, row.Bytes(4), feature_dim, item.features.data()));
  return item;
}

absl::StatusOr<std::vector<Item>> SqlStore::GetItems(const PublicParameters& parameters,
                                                     absl::Span<const std::string> ids) {
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, Lock::kRead));
  const auto& [session, collection] = begun;
  std::map<std::string, Item> found;
  PM_RETURN_IF_ERROR(QueryByIds(
      session.get(),
      absl::StrCat("SELECT ", kItemColumns, " FROM items WHERE collection = $1 AND id"), "",
      collection.key, ids, [&](const SqlRow& row) -> absl::Status {
        PM_ASSIGN_OR_RETURN(found[row.Text(0)], ReadItem(row, parameters.feature_dim, true));
        return absl::OkStatus();
      }));
  std::vector<Item> items;
  for (const std::string& id : ids) {
    if (const auto item = found.find(id); item != found.end()) items.push_back(item->second);
  }
  return items;
}

absl::Status SqlStore::ScanItems(const PublicParameters& parameters, absl::string_view after,
                                 int64_t limit, bool with_features,
                                 absl::FunctionRef<bool(Item)> visit) {
  constexpr int64_t kScannedRows = 1000;
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, Lock::kRead));
  const auto& [session, collection] = begun;
  const std::string sql =
      absl::StrCat("SELECT ", with_features ? kItemColumns : kItemColumnsWithoutFeatures,
                   " FROM items WHERE collection = $1 AND id > $2 ORDER BY id LIMIT $3");
  std::string last(after);
  bool goes_on = true;
  while (goes_on && limit > 0) {
    const int64_t wanted = std::min(limit, kScannedRows);
    const std::string from = last;
    int64_t rows = 0;
    PM_RETURN_IF_ERROR(session->Query(
        sql, {collection.key, SqlUtf8{from}, wanted}, [&](const SqlRow& row) -> absl::Status {
          ++rows;
          if (!goes_on) return absl::OkStatus();
          PM_ASSIGN_OR_RETURN(Item item, ReadItem(row, parameters.feature_dim, with_features));
          last = item.id;
          goes_on = visit(std::move(item));
          return absl::OkStatus();
        }));
    goes_on = goes_on && rows == wanted;
    limit -= wanted;
  }
  return absl::OkStatus();
}

absl::Status SqlStore::ReadGallery(const PublicParameters& parameters, GalleryVisitor visit) {
  const int64_t feature_dim = parameters.feature_dim;
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, Lock::kRead));
  const auto& [session, collection] = begun;
  PM_ASSIGN_OR_RETURN(const int64_t count, ExactItems(session.get(), collection));
  PM_RETURN_IF_ERROR(FollowIndexes(session.get()));
  const int64_t part_rows = GalleryPartRows(feature_dim);
  std::string after;
  int64_t left = count;
  do {
    const int64_t wanted = std::min(part_rows, left);
    // Reads beyond the last item, to detect a wrong count.
    const bool ends = wanted == left;
    Gallery part;
    part.version = static_cast<uint64_t>(collection.latest_version);
    part.collection = collection.key;
    part.features.resize(wanted, feature_dim);
    int64_t rows = 0;
    PM_RETURN_IF_ERROR(
        session->Query("SELECT id, label, features, payload FROM items "
                       "WHERE collection = $1 AND id > $2 ORDER BY id LIMIT $3",
                       {collection.key, SqlUtf8{after}, wanted + (ends ? 1 : 0)},
                       [&](const SqlRow& row) -> absl::Status {
                         if (rows++ == wanted) return absl::OkStatus();
                         part.ids.push_back(row.Text(0));
                         part.labels.push_back(static_cast<int32_t>(row.Int(1)));
                         part.payloads.push_back(row.Text(3));
                         return DecodeFeatures(part.ids.back(), row.Bytes(2), feature_dim,
                                               part.features.row(rows - 1).data());
                       }));
    if (rows != wanted) return Damaged("a collection counts other items than it has");
    left -= rows;
    if (!part.ids.empty()) after = part.ids.back();
    PM_RETURN_IF_ERROR(visit(count, std::move(part)));
  } while (left > 0);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> SqlStore::ExactItems(SqlSession* session,
                                             const CollectionRow& collection) const {
  if (!is_shard()) return collection.items;
  return session->QueryInt("SELECT count(*) FROM items WHERE collection = $1", {collection.key});
}

absl::Status SqlStore::ReadChanges(const PublicParameters& parameters, uint64_t after,
                                   ChangesVisitor visit) {
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, Lock::kRead));
  const auto& [session, collection] = begun;
  PM_RETURN_IF_ERROR(FollowIndexes(session.get()));
  ItemChanges changes;
  changes.collection = collection.key;
  changes.latest_version = static_cast<uint64_t>(collection.latest_version);
  auto last = static_cast<int64_t>(after);
  if (!is_shard() || after == 0 || last + kKeptTombstones < collection.latest_version) {
    PM_ASSIGN_OR_RETURN(const int64_t items, ExactItems(session.get(), collection));
    changes.items = static_cast<uint64_t>(items);
  }
  if (after > 0) {
    PM_RETURN_IF_ERROR(session->Query(
        "SELECT DISTINCT id FROM deletions d WHERE collection = $1 AND version > $2 AND NOT "
        "EXISTS (SELECT 1 FROM items WHERE collection = $1 AND id = d.id)",
        {collection.key, last},
        [&](const SqlRow& row) { changes.deleted.push_back(row.Text(0)); }));
  }
  const int64_t part_rows = GalleryPartRows(parameters.feature_dim);
  const std::string sql =
      absl::StrCat("SELECT ", kItemColumns,
                   " FROM items WHERE collection = $1 AND version > $2 ORDER BY version LIMIT $3");
  for (bool any = false;; any = true) {
    std::vector<Item> part;
    PM_RETURN_IF_ERROR(session->Query(
        sql, {collection.key, last, part_rows}, [&](const SqlRow& row) -> absl::Status {
          PM_ASSIGN_OR_RETURN(part.emplace_back(), ReadItem(row, parameters.feature_dim, true));
          return absl::OkStatus();
        }));
    if (part.empty() && any) return absl::OkStatus();
    const bool ends = std::ssize(part) < part_rows;
    if (!part.empty()) last = static_cast<int64_t>(part.back().version);
    PM_RETURN_IF_ERROR(visit(changes, std::move(part)));
    if (ends) return absl::OkStatus();
  }
}

absl::Status SqlStore::DeleteRows(SqlSession* session, const LargeTable& table, int64_t key) {
  const std::string from =
      absl::StrCat(" FROM ", table.name, " WHERE ", table.key, " = $1 AND ", table.order, " > $2");
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  for (int64_t after = -1, last = 0; last != kNone; after = last) {
    last = kNone;
    PM_RETURN_IF_ERROR(session->Query(
        absl::StrCat("SELECT ", table.order, from, " ORDER BY ", table.order, " LIMIT 1 OFFSET $3"),
        {key, after, kDeletedRows - 1}, [&](const SqlRow& row) { last = row.Int(0); }));
    PM_RETURN_IF_ERROR(session->Run(absl::StrCat("DELETE", from, " AND ", table.order, " <= $3"),
                                    {key, after, last}));
  }
  return absl::OkStatus();
}

// Writes and deletes the rows before locking the collection, so that its items can change while the
// rows are written.
absl::StatusOr<uint64_t> SqlStore::SaveEmbedding(const PublicParameters& parameters,
                                                 const Embedding& embedding) {
  const std::string& uuid = parameters.collection_uuid;
  const auto items_version = static_cast<int64_t>(embedding.items_version);
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(uuid, Lock::kKeepAlive));
  const auto& [session, collection] = begun;
  if (embedding.collection != 0 && embedding.collection != collection.key) {
    return NoSuchCollection(uuid);
  }
  const absl::string_view table = is_shard() ? "prepared_embeddings" : "embeddings";
  PM_ASSIGN_OR_RETURN(const EmbeddingRow seen, FindEmbedding(session.get(), collection.key, table));
  if (items_version < seen.items_version) return LaterEmbeddingError(seen.items_version);
  PM_ASSIGN_OR_RETURN(const int64_t key, NewKey(session.get()));
  PM_RETURN_IF_ERROR(WriteEmbeddedItems(session.get(), key, embedding));
  PM_RETURN_IF_ERROR(DeleteRows(session.get(), kEmbeddedItems, seen.key));
  PM_RETURN_IF_ERROR(FindCollection(session.get(), uuid, Lock::kChange).status());
  PM_ASSIGN_OR_RETURN(const EmbeddingRow former,
                      FindEmbedding(session.get(), collection.key, table));
  if (items_version < former.items_version) return LaterEmbeddingError(former.items_version);
  if (is_shard()) {
    PM_ASSIGN_OR_RETURN(const EmbeddingRow present, FindEmbedding(session.get(), collection.key));
    if (items_version < present.items_version) return LaterEmbeddingError(present.items_version);
    // The rows of `seen`, which this transaction deletes, may be those of the present one by now.
    if (former.key != seen.key || present.version >= static_cast<int64_t>(embedding.version)) {
      return absl::AbortedError("another build has taken the place of this one");
    }
  } else if (former.key != seen.key) {  // another daemon has saved one since
    PM_RETURN_IF_ERROR(DeleteRows(session.get(), kEmbeddedItems, former.key));
  }
  const int64_t version =
      embedding.version > 0 ? static_cast<int64_t>(embedding.version) : former.version + 1;
  const Matrix& anchors = embedding.anchor_coordinates;
  PM_RETURN_IF_ERROR(session->Run(
      absl::StrCat("INSERT INTO ", table,
                   " (collection, key, version, items_version, objective, anchor_coordinates) "
                   "VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (collection) DO UPDATE SET key = "
                   "$2, version = $3, items_version = $4, objective = $5, anchor_coordinates = $6"),
      {collection.key, key, version, items_version, embedding.objective,
       SqlBytes{BytesOf(anchors.data(), anchors.size())}}));
  if (!is_shard()) {
    PM_RETURN_IF_ERROR(DeleteCells(session.get(), collection.key));
    PM_RETURN_IF_ERROR(PruneTombstones(session.get(), collection, items_version));
    PM_RETURN_IF_ERROR(Notify(session.get(), uuid));
  }
  PM_RETURN_IF_ERROR(session->Commit());
  return static_cast<uint64_t>(version);
}

absl::Status SqlStore::PruneTombstones(SqlSession* session, const CollectionRow& collection,
                                       int64_t items_version) {
  PM_ASSIGN_OR_RETURN(const int64_t prunable, PrunableVersion(session, collection, items_version));
  return session->Run("DELETE FROM deletions WHERE collection = $1 AND version <= $2",
                      {collection.key, prunable});
}

absl::StatusOr<std::optional<Embedding>> SqlStore::LoadEmbedding(
    const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, Lock::kRead));
  const auto& [session, collection] = begun;
  const int64_t dim = parameters.settings.embedding_dim;
  std::optional<Embedding> embedding;
  int64_t key = 0;
  PM_RETURN_IF_ERROR(session->Query(
      "SELECT key, version, items_version, objective, anchor_coordinates FROM embeddings "
      "WHERE collection = $1",
      {collection.key}, [&](const SqlRow& row) -> absl::Status {
        key = row.Int(0);
        embedding.emplace();
        embedding->version = row.Count(1);
        embedding->items_version = row.Count(2);
        embedding->objective = row.Double(3);
        embedding->anchor_coordinates.resize(parameters.anchor_count, dim);
        return Place(DecodeValues("coordinates of the anchors", row.Bytes(4),
                                  parameters.anchor_count, dim,
                                  embedding->anchor_coordinates.data()));
      }));
  if (!embedding.has_value()) return embedding;
  PM_RETURN_IF_ERROR(ReadEmbeddedItems(session.get(), key, dim, &*embedding));
  PM_ASSIGN_OR_RETURN(embedding->deleted,
                      ReadDeletedSince(session.get(), collection.key,
                                       static_cast<int64_t>(embedding->items_version), 0));
  embedding->deleted_until = static_cast<uint64_t>(collection.latest_version);
  return embedding;
}

absl::Status SqlStore::ReadEmbeddedItems(SqlSession* session, int64_t key, int64_t embedding_dim,
                                         Embedding* embedding) const {
  PM_ASSIGN_OR_RETURN(
      const int64_t rows,
      session->QueryInt("SELECT count(*) FROM embedded_items WHERE embedding = $1", {key}));
  embedding->coordinates.resize(rows, embedding_dim);
  for (int64_t first = 0; first < rows; first += kChunkRows) {
    const int64_t end = std::min(rows, first + kChunkRows);
    PM_RETURN_IF_ERROR(session->Query(
        "SELECT id, label, coordinates, payload FROM embedded_items WHERE embedding = $1 AND "
        "position >= $2 AND position < $3 ORDER BY position",
        {key, first, end}, [&](const SqlRow& row) -> absl::Status {
          const auto at = static_cast<Eigen::Index>(embedding->ids.size());
          embedding->ids.push_back(row.Text(0));
          embedding->labels.push_back(static_cast<int32_t>(row.Int(1)));
          embedding->payloads.push_back(row.Text(3));
          return Place(DecodeValues(absl::StrCat("coordinates of item ", embedding->ids.back()),
                                    row.Bytes(2), 1, embedding_dim,
                                    embedding->coordinates.row(at).data()));
        }));
    if (std::ssize(embedding->ids) != end) return Damaged("an embedding lacks items");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::vector<DeletedItem>>> SqlStore::DeletedSince(
    const PublicParameters& parameters, uint64_t embedding_version, uint64_t after) {
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, Lock::kRead));
  const auto& [session, collection] = begun;
  PM_ASSIGN_OR_RETURN(const EmbeddingRow embedding, FindEmbedding(session.get(), collection.key));
  if (static_cast<uint64_t>(embedding.version) != embedding_version) return std::nullopt;
  return ReadDeletedSince(session.get(), collection.key, embedding.items_version,
                          static_cast<int64_t>(after));
}

absl::StatusOr<ChangesSinceEmbedding> SqlStore::CountChanges(const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, Lock::kRead));
  const auto& [session, collection] = begun;
  PM_ASSIGN_OR_RETURN(const EmbeddingRow embedding, FindEmbedding(session.get(), collection.key));
  ChangesSinceEmbedding changes;
  PM_RETURN_IF_ERROR(session->Query(
      "SELECT count(*) FILTER (WHERE inserted > $2), count(*) FILTER (WHERE inserted <= $2), "
      "(SELECT count(*) FROM deletions WHERE collection = $1 AND version > $2 AND "
      "inserted <= $2) FROM items WHERE collection = $1 AND version > $2",
      {collection.key, embedding.items_version}, [&](const SqlRow& row) {
        changes = {row.Count(0), row.Count(1), row.Count(2)};
      }));
  return changes;
}

absl::Status SqlStore::DeleteCells(SqlSession* session, int64_t collection) {
  PM_RETURN_IF_ERROR(session->Run(
      "DELETE FROM cell_parts WHERE cells IN (SELECT key FROM cells WHERE collection = $1)",
      {collection}));
  return session->Run("DELETE FROM cells WHERE collection = $1", {collection});
}

// Writes the parts before locking the collection, so that its items can change during that time.
absl::Status SqlStore::SaveCells(const PublicParameters& parameters, const EmbeddingVersion& of,
                                 absl::string_view image) {
  const std::string& uuid = parameters.collection_uuid;
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(uuid, Lock::kKeepAlive));
  const auto& [session, collection] = begun;
  PM_RETURN_IF_ERROR(FindEmbeddingKey(session.get(), collection.key, of).status());
  PM_ASSIGN_OR_RETURN(const int64_t key, NewKey(session.get()));
  for (int64_t part = 0; !image.empty(); ++part) {
    const absl::string_view bytes = image.substr(0, kImagePartBytes);
    image.remove_prefix(bytes.size());
    PM_RETURN_IF_ERROR(
        session->Run("INSERT INTO cell_parts (cells, part, bytes) VALUES ($1, $2, $3)",
                     {key, part, SqlBytes{bytes}}));
  }
  PM_RETURN_IF_ERROR(FindCollection(session.get(), uuid, Lock::kChange).status());
  PM_ASSIGN_OR_RETURN(const int64_t embedding, FindEmbeddingKey(session.get(), collection.key, of));
  PM_RETURN_IF_ERROR(DeleteCells(session.get(), collection.key));
  PM_RETURN_IF_ERROR(session->Run(
      "INSERT INTO cells (collection, key, embedding, quality) VALUES ($1, $2, $3, $4)",
      {collection.key, key, embedding, SqlBytes{""}}));
  return session->Commit();
}

absl::Status SqlStore::SaveQuality(const PublicParameters& parameters, const EmbeddingVersion& of,
                                   const CellQuality& quality) {
  const std::string bytes = EncodeQuality(quality);
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, Lock::kChange));
  const auto& [session, collection] = begun;
  PM_ASSIGN_OR_RETURN(const int64_t embedding, FindEmbeddingKey(session.get(), collection.key, of));
  PM_RETURN_IF_ERROR(session->Run("UPDATE cells SET quality = $2 WHERE embedding = $1",
                                  {embedding, SqlBytes{bytes}}));
  return session->Commit();
}

absl::StatusOr<std::optional<StoredCells>> SqlStore::LoadCells(const PublicParameters& parameters,
                                                               const EmbeddingVersion& of,
                                                               SizeCheck check) {
  PM_ASSIGN_OR_RETURN(const auto begun, BeginWith(parameters.collection_uuid, Lock::kRead));
  const auto& [session, collection] = begun;
  PM_ASSIGN_OR_RETURN(const EmbeddingRow stored, FindEmbedding(session.get(), collection.key));
  if (stored != of) return std::nullopt;
  std::optional<StoredCells> cells;
  int64_t key = 0, parts = 0, bytes = 0;
  PM_RETURN_IF_ERROR(session->Query(
      "SELECT key, quality, (SELECT count(*) FROM cell_parts WHERE cells = key), "
      "(SELECT CAST(coalesce(sum(length(bytes)), 0) AS bigint) FROM cell_parts "
      "WHERE cells = key) FROM cells WHERE embedding = $1",
      {stored.key}, [&](const SqlRow& row) -> absl::Status {
        key = row.Int(0);
        parts = row.Int(2);
        bytes = row.Int(3);
        cells.emplace();
        auto quality = DecodeQuality(row.Bytes(1), parameters.cell_partitions.size());
        PM_RETURN_IF_ERROR(Place(quality.status()));
        cells->quality = *std::move(quality);
        return absl::OkStatus();
      }));
  if (!cells.has_value()) return cells;
  PM_RETURN_IF_ERROR(check(bytes));
  cells->image.reserve(static_cast<size_t>(bytes));
  for (int64_t part = 0; part < parts; ++part) {
    PM_RETURN_IF_ERROR(
        session->Query("SELECT bytes FROM cell_parts WHERE cells = $1 AND part = $2", {key, part},
                       [&](const SqlRow& row) { absl::StrAppend(&cells->image, row.Bytes(0)); }));
  }
  return cells;
}

}  // namespace privatemail::server
