// PostgresStore: embeddings.
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/decode.h"
#include "server/store/postgres/postgres_store.h"
#include "server/store/postgres/rows.h"

namespace privatemail::server {

using postgres::CollectionRow;
using postgres::EmbeddingRow;
using postgres::Parameters;
using postgres::Result;
using postgres::RowLock;
using postgres::Transaction;

namespace {

// The embedding to be replaced. ABORTED: it is of later items.
absl::StatusOr<EmbeddingRow> FindFormer(Transaction* transaction, int64_t collection,
                                        int64_t items_version) {
  PM_ASSIGN_OR_RETURN(const EmbeddingRow former, postgres::FindEmbedding(transaction, collection));
  if (items_version >= former.items_version) return former;
  return LaterEmbeddingError(former.items_version);
}

absl::Status Replace(Transaction* transaction, int64_t collection, const EmbeddingRow& former,
                     int64_t key, const Embedding& embedding) {
  const auto items_version = static_cast<int64_t>(embedding.items_version);
  for (const char* sql : {postgres::kDeleteCellParts, postgres::kDeleteCells}) {
    PM_RETURN_IF_ERROR(transaction->Query(sql, Parameters().Int(collection)).status());
  }
  PM_RETURN_IF_ERROR(transaction
                         ->Query("DELETE FROM deletions WHERE collection = $1 AND version <= $2",
                                 Parameters().Int(collection).Int(items_version))
                         .status());
  const Matrix& anchors = embedding.anchor_coordinates;
  Parameters values;
  values.Int(collection).Int(key).Int(former.version + 1).Int(items_version);
  values.Double(embedding.objective).Bytes(BytesOf(anchors.data(), anchors.size()));
  return transaction
      ->Query(
          "INSERT INTO embeddings (collection, key, version, items_version, objective, "
          "anchor_coordinates) VALUES ($1, $2, $3, $4, $5, $6) "
          "ON CONFLICT (collection) DO UPDATE SET key = $2, version = $3, items_version = $4, "
          "objective = $5, anchor_coordinates = $6",
          values)
      .status();
}

}  // namespace

absl::StatusOr<int64_t> PostgresStore::NewEmbeddingKey() {
  PM_ASSIGN_OR_RETURN(Transaction transaction,
                      Transaction::Begin(&pool_, Transaction::Kind::kWrite));
  PM_ASSIGN_OR_RETURN(const Result next, transaction.Query("SELECT nextval('embedding_keys')"));
  PM_RETURN_IF_ERROR(transaction.Commit());
  return next.Int(0, 0);
}

absl::StatusOr<uint64_t> PostgresStore::SaveEmbedding(const PublicParameters& parameters,
                                                      const Embedding& embedding) {
  PM_ASSIGN_OR_RETURN(const int64_t key, NewEmbeddingKey());
  postgres::EmbeddedItemsEncoder rows(
      key, {0, embedding.ids, embedding.labels, embedding.payloads, &embedding.coordinates});
  return SaveEncoded(parameters, embedding, key, static_cast<int64_t>(embedding.ids.size()),
                     [&] { return rows.Next(); });
}

// Writes and deletes the rows before locking the collection, so that its items can change
// meanwhile.
absl::StatusOr<uint64_t> PostgresStore::SaveEncoded(const PublicParameters& parameters,
                                                    const Embedding& embedding, int64_t key,
                                                    int64_t count, EncodedRows next) {
  const std::string& uuid = parameters.collection_uuid;
  const auto items_version = static_cast<int64_t>(embedding.items_version);
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, uuid, RowLock::kKeepAlive));
  auto& [transaction, collection] = begun;
  if (embedding.collection != 0 && embedding.collection != collection.key) {
    return NoSuchCollection(uuid);
  }
  PM_ASSIGN_OR_RETURN(const EmbeddingRow seen,
                      FindFormer(&transaction, collection.key, items_version));
  int64_t written = 0;
  while (true) {
    PM_ASSIGN_OR_RETURN(const std::string rows, next());
    if (rows.empty()) break;
    PM_ASSIGN_OR_RETURN(const int64_t copied, postgres::WriteEmbeddedItems(&transaction, rows));
    written += copied;
  }
  if (written != count) {
    return absl::InternalError(
        absl::StrCat("an embedding of ", count, " rows came with ", written));
  }
  PM_RETURN_IF_ERROR(DeleteRows(&transaction, postgres::kEmbeddedItems, seen.key));
  PM_RETURN_IF_ERROR(postgres::FindCollection(&transaction, uuid, RowLock::kChange).status());
  PM_ASSIGN_OR_RETURN(const EmbeddingRow former,
                      FindFormer(&transaction, collection.key, items_version));
  if (former.key != seen.key) {  // another daemon has saved one since
    PM_RETURN_IF_ERROR(DeleteRows(&transaction, postgres::kEmbeddedItems, former.key));
  }
  PM_RETURN_IF_ERROR(Replace(&transaction, collection.key, former, key, embedding));
  PM_RETURN_IF_ERROR(postgres::Notify(&transaction, uuid));
  PM_RETURN_IF_ERROR(transaction.Commit());
  return static_cast<uint64_t>(former.version + 1);
}

absl::StatusOr<std::optional<Embedding>> PostgresStore::LoadEmbedding(
    const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, parameters.collection_uuid,
                                                                RowLock::kNone));
  auto& [transaction, collection] = begun;
  PM_ASSIGN_OR_RETURN(
      const Result found,
      transaction.Query("SELECT key, version, items_version, objective, anchor_coordinates "
                        "FROM embeddings WHERE collection = $1",
                        Parameters().Int(collection.key)));
  if (found.rows() == 0) return std::nullopt;
  Embedding embedding;
  embedding.version = static_cast<uint64_t>(found.Int(0, 1));
  embedding.items_version = static_cast<uint64_t>(found.Int(0, 2));
  embedding.objective = found.Double(0, 3);
  const int64_t dim = parameters.settings.embedding_dim;
  absl::StatusOr<Matrix> anchors =
      DecodeMatrix("coordinates of the anchors", found.Bytes(0, 4), parameters.anchor_count, dim);
  PM_RETURN_IF_ERROR(postgres::Place(anchors.status()));
  embedding.anchor_coordinates = *std::move(anchors);
  PM_RETURN_IF_ERROR(postgres::ReadEmbeddedItems(&transaction, found.Int(0, 0), dim, &embedding));
  PM_ASSIGN_OR_RETURN(embedding.deleted,
                      postgres::ReadDeletedSince(&transaction, collection.key, found.Int(0, 2), 0));
  return embedding;
}

absl::StatusOr<std::optional<std::vector<DeletedItem>>> PostgresStore::DeletedSince(
    const PublicParameters& parameters, uint64_t embedding_version, uint64_t after) {
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, parameters.collection_uuid,
                                                                RowLock::kNone));
  auto& [transaction, collection] = begun;
  PM_ASSIGN_OR_RETURN(const EmbeddingRow embedding,
                      postgres::FindEmbedding(&transaction, collection.key));
  if (static_cast<uint64_t>(embedding.version) != embedding_version) return std::nullopt;
  return postgres::ReadDeletedSince(&transaction, collection.key, embedding.items_version,
                                    static_cast<int64_t>(after));
}

absl::StatusOr<ChangesSinceEmbedding> PostgresStore::CountChanges(
    const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, parameters.collection_uuid,
                                                                RowLock::kNone));
  auto& [transaction, collection] = begun;
  PM_ASSIGN_OR_RETURN(const EmbeddingRow embedding,
                      postgres::FindEmbedding(&transaction, collection.key));
  PM_ASSIGN_OR_RETURN(
      const Result counted,
      transaction.Query("SELECT count(*) FILTER (WHERE inserted > $2), "
                        "count(*) FILTER (WHERE inserted <= $2), "
                        "(SELECT count(*) FROM deletions WHERE collection = $1 AND "
                        "version > $2 AND inserted <= $2) "
                        "FROM items WHERE collection = $1 AND version > $2",
                        Parameters().Int(collection.key).Int(embedding.items_version)));
  return ChangesSinceEmbedding{static_cast<uint64_t>(counted.Int(0, 0)),
                               static_cast<uint64_t>(counted.Int(0, 1)),
                               static_cast<uint64_t>(counted.Int(0, 2))};
}

}  // namespace privatemail::server
