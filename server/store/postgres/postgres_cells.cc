// PostgresStore: cell indexes of embeddings.
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/decode.h"
#include "server/store/postgres/connection.h"
#include "server/store/postgres/postgres_store.h"
#include "server/store/postgres/rows.h"

namespace privatemail::server {

using postgres::Connection;
using postgres::EmbeddingRow;
using postgres::Parameters;
using postgres::Result;
using postgres::RowLock;
using postgres::Transaction;

namespace {

// The key of the collection's embedding if it is `of`. ABORTED.
absl::StatusOr<int64_t> KeyOfEmbedding(Transaction* transaction, int64_t collection,
                                       const EmbeddingVersion& of) {
  PM_ASSIGN_OR_RETURN(const EmbeddingRow row, postgres::FindEmbedding(transaction, collection));
  const EmbeddingVersion stored{row.version, row.items_version};
  if (stored == of) return row.key;
  return OtherEmbeddingError(stored);
}

}  // namespace

// Writes the parts before locking the collection, so that its items can change during that time.
absl::Status PostgresStore::SaveCells(const PublicParameters& parameters,
                                      const EmbeddingVersion& of, absl::string_view image) {
  const std::string& uuid = parameters.collection_uuid;
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, uuid, RowLock::kKeepAlive));
  auto& [transaction, collection] = begun;
  PM_RETURN_IF_ERROR(KeyOfEmbedding(&transaction, collection.key, of).status());
  PM_ASSIGN_OR_RETURN(const Result next, transaction.Query("SELECT nextval('embedding_keys')"));
  const int64_t key = next.Int(0, 0);
  for (int64_t part = 0; !image.empty(); ++part) {
    const absl::string_view bytes = image.substr(0, kImagePartBytes);
    image.remove_prefix(bytes.size());
    PM_RETURN_IF_ERROR(transaction
                           .Query("INSERT INTO cell_parts (cells, part, bytes) VALUES ($1, $2, $3)",
                                  Parameters().Int(key).Int(part).Bytes(bytes))
                           .status());
  }
  PM_RETURN_IF_ERROR(postgres::FindCollection(&transaction, uuid, RowLock::kChange).status());
  PM_ASSIGN_OR_RETURN(const int64_t embedding, KeyOfEmbedding(&transaction, collection.key, of));
  for (const char* sql : {postgres::kDeleteCellParts, postgres::kDeleteCells}) {
    PM_RETURN_IF_ERROR(transaction.Query(sql, Parameters().Int(collection.key)).status());
  }
  PM_RETURN_IF_ERROR(transaction
                         .Query("INSERT INTO cells (collection, key, embedding) VALUES "
                                "($1, $2, $3)",
                                Parameters().Int(collection.key).Int(key).Int(embedding))
                         .status());
  return transaction.Commit();
}

absl::Status PostgresStore::SaveQuality(const PublicParameters& parameters,
                                        const EmbeddingVersion& of, const CellQuality& quality) {
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, parameters.collection_uuid,
                                                                RowLock::kChange));
  auto& [transaction, collection] = begun;
  PM_ASSIGN_OR_RETURN(const int64_t embedding, KeyOfEmbedding(&transaction, collection.key, of));
  PM_RETURN_IF_ERROR(transaction
                         .Query("UPDATE cells SET quality = $2 WHERE embedding = $1",
                                Parameters().Int(embedding).Bytes(EncodeQuality(quality)))
                         .status());
  return transaction.Commit();
}

absl::StatusOr<std::optional<StoredCells>> PostgresStore::LoadCells(
    const PublicParameters& parameters, const EmbeddingVersion& of, SizeCheck check) {
  PM_ASSIGN_OR_RETURN(auto begun, postgres::BeginWithCollection(&pool_, parameters.collection_uuid,
                                                                RowLock::kNone));
  auto& [transaction, collection] = begun;
  const absl::StatusOr<int64_t> embedding = KeyOfEmbedding(&transaction, collection.key, of);
  if (absl::IsAborted(embedding.status())) return std::nullopt;
  PM_RETURN_IF_ERROR(embedding.status());
  PM_ASSIGN_OR_RETURN(
      const Result head,
      transaction.Query("SELECT key, quality, (SELECT count(*) FROM cell_parts WHERE cells = key), "
                        "(SELECT coalesce(sum(length(bytes)), 0)::bigint FROM cell_parts "
                        "WHERE cells = key) FROM cells WHERE embedding = $1",
                        Parameters().Int(*embedding)));
  if (head.rows() == 0) return std::nullopt;
  PM_RETURN_IF_ERROR(check(head.Int(0, 3)));
  StoredCells cells;
  auto quality = DecodeQuality(head.Bytes(0, 1), parameters.cell_partitions.size());
  PM_RETURN_IF_ERROR(postgres::Place(quality.status()));
  cells.quality = *std::move(quality);
  cells.image.reserve(static_cast<size_t>(head.Int(0, 3)));
  for (int64_t part = 0; part < head.Int(0, 2); ++part) {
    PM_ASSIGN_OR_RETURN(
        const Result read,
        transaction.Query("SELECT bytes FROM cell_parts WHERE cells = $1 AND part = $2",
                          Parameters().Int(head.Int(0, 0)).Int(part)));
    absl::StrAppend(&cells.image, read.rows() == 1 ? read.Bytes(0, 0) : "");
  }
  return cells;
}

// A lock of a session of its own: it ends with the daemon, too.
absl::StatusOr<std::shared_ptr<const void>> PostgresStore::ClaimCells(
    const PublicParameters& parameters) {
  PM_ASSIGN_OR_RETURN(std::shared_ptr<Connection> session, Connection::Open(pool_.info()));
  PM_ASSIGN_OR_RETURN(const Result locked,
                      session->Query("SELECT pg_try_advisory_lock(hashtextextended($1, 0))::int",
                                     Parameters().Text(parameters.collection_uuid)));
  if (locked.Int(0, 0) == 1) return session;
  return std::shared_ptr<const void>();
}

}  // namespace privatemail::server
