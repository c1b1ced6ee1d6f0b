#include "server/store/postgres/postgres_store.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/decode.h"
#include "server/store/postgres/rows.h"
#include "server/store/postgres/schema.h"

namespace privatemail::server {

using postgres::CollectionRow;
using postgres::EmbeddingRow;
using postgres::Parameters;
using postgres::Result;
using postgres::RowLock;
using postgres::Transaction;

absl::StatusOr<std::unique_ptr<PostgresStore>> PostgresStore::Open(
    const std::string& conninfo, const postgres::PoolOptions& options) {
  PM_ASSIGN_OR_RETURN(postgres::Target target, postgres::Target::Parse(conninfo));
  auto store = std::unique_ptr<PostgresStore>(new PostgresStore(std::move(target), options));
  PM_RETURN_IF_ERROR(postgres::Migrate(&store->pool_, postgres::Migrations()));
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
  return absl::NotFoundError(absl::StrCat("collection ", uuid, " does not exist"));
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

absl::StatusOr<uint64_t> PostgresStore::Delete(absl::string_view uuid) {
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, uuid, RowLock::kDelete));
  auto& [transaction, collection] = begun;
  for (const char* sql :
       {"DELETE FROM items WHERE collection = $1", "DELETE FROM deletions WHERE collection = $1",
        "DELETE FROM embedded_items WHERE embedding IN "
        "(SELECT key FROM embeddings WHERE collection = $1)",
        "DELETE FROM embeddings WHERE collection = $1", "DELETE FROM collections WHERE key = $1"}) {
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
