#include "server/store/postgres/postgres_store.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/decode.h"
#include "server/store/postgres/rows.h"
#include "server/store/postgres/schema.h"

namespace privatemail::server {

using postgres::kDeleteCellParts;
using postgres::kDeleteCells;
using postgres::Parameters;
using postgres::Result;
using postgres::RowLock;
using postgres::Transaction;

namespace {

// In the caller's transaction; returns the key. The counts are those at its commit.
absl::StatusOr<int64_t> Insert(Transaction* transaction, const StoredCollection& collection,
                               uint64_t items, uint64_t latest_version) {
  const Anchors& anchors = collection.anchors;
  Parameters values;
  values.Text(collection.parameters.collection_uuid).Text(collection.name);
  values.Bytes(EncodeParameters(collection.parameters));
  values.Bytes(BytesOf(anchors.features.data(), anchors.features.size()));
  values.Bytes(BytesOf(anchors.labels.data(), static_cast<int64_t>(anchors.labels.size())));
  values.Int(static_cast<int64_t>(items)).Int(static_cast<int64_t>(latest_version));
  // A concurrent creation of the same name waits here for the outcome of the first.
  PM_ASSIGN_OR_RETURN(const Result inserted,
                      transaction->Query("INSERT INTO collections (uuid, name, parameters, "
                                         "anchor_features, anchor_labels, items, latest_version) "
                                         "VALUES ($1, $2, $3, $4, $5, $6, $7) "
                                         "ON CONFLICT DO NOTHING RETURNING key",
                                         values));
  if (inserted.rows() == 1) return inserted.Int(0, 0);
  PM_ASSIGN_OR_RETURN(const Result named,
                      transaction->Query("SELECT 1 FROM collections WHERE name = $1",
                                         Parameters().Text(collection.name)));
  return absl::AlreadyExistsError(absl::StrCat(
      "collection ", named.rows() > 0 ? collection.name : collection.parameters.collection_uuid,
      " exists already"));
}

// Rows first .. last - 1; versions continue after `version`.
absl::Status InsertItems(Transaction* transaction, int64_t collection, const Gallery& gallery,
                         uint64_t version, size_t first, size_t last) {
  std::vector<std::string> ids;
  std::vector<std::string> features;
  std::vector<std::string> payloads;
  std::vector<int64_t> labels;
  std::vector<int64_t> versions;
  for (size_t row = first; row < last; ++row) {
    Item item = ItemOf(gallery, row);
    features.emplace_back(
        BytesOf(item.features.data(), static_cast<int64_t>(item.features.size())));
    ids.push_back(std::move(item.id));
    payloads.push_back(std::move(item.payload));
    labels.push_back(item.label);
    versions.push_back(static_cast<int64_t>(++version));
  }
  Parameters values;
  values.Int(collection).ByteArrays(ids).Ints(labels).ByteArrays(features);
  values.ByteArrays(payloads).Ints(versions);
  return transaction
      ->Query(
          "INSERT INTO items (collection, id, label, features, payload, inserted, version) "
          "SELECT $1, i, l, f, p, v, v FROM unnest($2, $3, $4, $5, $6) AS t (i, l, f, p, v)",
          values)
      .status();
}

// The number of rows from `first` on in a statement of about a megabyte.
size_t RowsOfAStatement(const Gallery& gallery, size_t first) {
  constexpr size_t kBytes = size_t{1} << 20;
  size_t bytes = 0;
  size_t row = first;
  for (; row < gallery.ids.size() && (row == first || bytes < kBytes); ++row) {
    bytes += gallery.ids[row].size() + gallery.payloads[row].size() +
             static_cast<size_t>(gallery.features.cols()) * sizeof(float);
  }
  return row - first;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresStore>> PostgresStore::Open(
    const std::string& conninfo, const postgres::PoolOptions& options) {
  PM_ASSIGN_OR_RETURN(postgres::ConnectionInfo info, postgres::ConnectionInfo::Parse(conninfo));
  auto store = std::unique_ptr<PostgresStore>(new PostgresStore(std::move(info), options));
  PM_RETURN_IF_ERROR(postgres::PrepareSchema(&store->pool_));
  return store;
}

absl::StatusOr<std::vector<StoredCollection>> PostgresStore::LoadCollections() {
  PM_ASSIGN_OR_RETURN(Transaction transaction,
                      Transaction::Begin(&pool_, Transaction::Kind::kRead));
  PM_ASSIGN_OR_RETURN(const Result result,
                      transaction.Query(absl::StrCat("SELECT ", postgres::kCollectionColumns,
                                                     " FROM collections ORDER BY name")));
  std::vector<StoredCollection> collections;
  for (int row = 0; row < result.rows(); ++row) {
    PM_ASSIGN_OR_RETURN(collections.emplace_back(), postgres::ReadCollection(result, row));
  }
  return collections;
}

absl::StatusOr<StoredCollection> PostgresStore::LoadCollection(absl::string_view uuid) {
  PM_ASSIGN_OR_RETURN(Transaction transaction,
                      Transaction::Begin(&pool_, Transaction::Kind::kRead));
  PM_ASSIGN_OR_RETURN(const Result result,
                      transaction.Query(absl::StrCat("SELECT ", postgres::kCollectionColumns,
                                                     " FROM collections WHERE uuid = $1"),
                                        Parameters().Text(uuid)));
  if (result.rows() == 1) return postgres::ReadCollection(result, 0);
  return NoSuchCollection(uuid);
}

absl::StatusOr<std::vector<CollectionState>> PostgresStore::ListStates() {
  PM_ASSIGN_OR_RETURN(Transaction transaction,
                      Transaction::Begin(&pool_, Transaction::Kind::kRead));
  PM_ASSIGN_OR_RETURN(
      const Result result,
      transaction.Query("SELECT c.uuid, c.name, c.key, c.items, c.latest_version, "
                        "coalesce(e.version, 0) "
                        "FROM collections c LEFT JOIN embeddings e ON e.collection = c.key "
                        "ORDER BY c.name"));
  std::vector<CollectionState> states;
  for (int row = 0; row < result.rows(); ++row) {
    states.push_back({std::string(result.Bytes(row, 0)), std::string(result.Bytes(row, 1)),
                      result.Int(row, 2), static_cast<uint64_t>(result.Int(row, 3)),
                      static_cast<uint64_t>(result.Int(row, 4)),
                      static_cast<uint64_t>(result.Int(row, 5))});
  }
  return states;
}

absl::Status PostgresStore::Create(const StoredCollection& collection) {
  PM_ASSIGN_OR_RETURN(Transaction transaction,
                      Transaction::Begin(&pool_, Transaction::Kind::kWrite));
  PM_RETURN_IF_ERROR(Insert(&transaction, collection, 0, 0).status());
  PM_RETURN_IF_ERROR(postgres::Notify(&transaction, collection.parameters.collection_uuid));
  return transaction.Commit();
}

absl::StatusOr<int64_t> PostgresStore::FixDimension(absl::string_view uuid, int64_t dimension) {
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, uuid, RowLock::kChange));
  auto& [transaction, collection] = begun;
  PM_ASSIGN_OR_RETURN(const Result found,
                      transaction.Query("SELECT parameters FROM collections WHERE key = $1",
                                        Parameters().Int(collection.key)));
  std::string parameters(found.Bytes(0, 0));
  const absl::StatusOr<int64_t> fixed = server::FixDimension(uuid, dimension, &parameters);
  if (absl::IsDataLoss(fixed.status())) return postgres::Place(fixed.status());
  PM_RETURN_IF_ERROR(fixed.status());
  PM_RETURN_IF_ERROR(transaction
                         .Query("UPDATE collections SET parameters = $2 WHERE key = $1",
                                Parameters().Int(collection.key).Bytes(parameters))
                         .status());
  PM_RETURN_IF_ERROR(postgres::Notify(&transaction, uuid));
  PM_RETURN_IF_ERROR(transaction.Commit());
  return fixed;
}

absl::Status PostgresStore::ImportParts(const StoredCollection& collection, GallerySource source) {
  PM_ASSIGN_OR_RETURN(Transaction transaction,
                      Transaction::Begin(&pool_, Transaction::Kind::kWrite));
  PM_ASSIGN_OR_RETURN(const int64_t key, Insert(&transaction, collection, collection.items,
                                                collection.latest_version + collection.items));
  uint64_t version = collection.latest_version;
  PM_RETURN_IF_ERROR(source([&](Gallery part) -> absl::Status {
    for (size_t first = 0; first < part.ids.size();) {
      const size_t last = first + RowsOfAStatement(part, first);
      PM_RETURN_IF_ERROR(InsertItems(&transaction, key, part, version, first, last));
      version += last - first;
      first = last;
    }
    return absl::OkStatus();
  }));
  PM_RETURN_IF_ERROR(postgres::Notify(&transaction, collection.parameters.collection_uuid));
  return transaction.Commit();
}

absl::StatusOr<uint64_t> PostgresStore::Delete(absl::string_view uuid) {
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, uuid, RowLock::kDelete));
  auto& [transaction, collection] = begun;
  PM_ASSIGN_OR_RETURN(const postgres::EmbeddingRow embedding,
                      postgres::FindEmbedding(&transaction, collection.key));
  PM_RETURN_IF_ERROR(DeleteRows(&transaction, postgres::kItems, collection.key));
  PM_RETURN_IF_ERROR(DeleteRows(&transaction, postgres::kDeletions, collection.key));
  PM_RETURN_IF_ERROR(DeleteRows(&transaction, postgres::kEmbeddedItems, embedding.key));
  for (const char* sql : {"DELETE FROM embeddings WHERE collection = $1", kDeleteCellParts,
                          kDeleteCells, "DELETE FROM collections WHERE key = $1"}) {
    PM_RETURN_IF_ERROR(transaction.Query(sql, Parameters().Int(collection.key)).status());
  }
  PM_RETURN_IF_ERROR(postgres::Notify(&transaction, uuid));
  PM_RETURN_IF_ERROR(transaction.Commit());
  return static_cast<uint64_t>(collection.items);
}

absl::Status PostgresStore::ReadGallery(const PublicParameters& parameters, GalleryVisitor visit) {
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, parameters.collection_uuid,
                                                                RowLock::kNone));
  auto& [transaction, collection] = begun;
  return postgres::ReadItems(&transaction, collection, {0, collection.items},
                             parameters.feature_dim, visit);
}

absl::Status PostgresStore::ReadRange(const StoredCollection& collection, int64_t first,
                                      int64_t count, GalleryVisitor visit) {
  PM_ASSIGN_OR_RETURN(
      auto begun,
      postgres::BeginWithCollection(&pool_, collection.parameters.collection_uuid, RowLock::kNone));
  auto& [transaction, found] = begun;
  if (found.key != collection.key ||
      static_cast<uint64_t>(found.latest_version) != collection.latest_version) {
    return absl::AbortedError(absl::StrCat(
        "the items of collection ", collection.name, " were changed, expected version ",
        collection.latest_version, " of them, found version ", found.latest_version));
  }
  return postgres::ReadItems(&transaction, found, {first, count}, collection.parameters.feature_dim,
                             visit);
}

}  // namespace privatemail::server
