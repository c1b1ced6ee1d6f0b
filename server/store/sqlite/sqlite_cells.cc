// SqliteStore: cell indexes of embeddings.
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "server/store/decode.h"
#include "server/store/sqlite/rows.h"
#include "server/store/sqlite/sqlite_store.h"

namespace privatemail::server {

using sqlite::Database;
using sqlite::Statement;
using sqlite::Transaction;

absl::StatusOr<int64_t> SqliteStore::KeyOfEmbedding(Database* database, absl::string_view uuid,
                                                    const EmbeddingVersion& of) {
  PM_ASSIGN_OR_RETURN(const int64_t key, KeyOf(database, uuid));
  PM_ASSIGN_OR_RETURN(const EmbeddingVersion stored, VersionOf(database, key));
  if (stored == of) return key;
  return OtherEmbeddingError(stored);
}

absl::Status SqliteStore::SaveCells(const PublicParameters& parameters, const EmbeddingVersion& of,
                                    absl::string_view image) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, BeginWrite());
  PM_ASSIGN_OR_RETURN(const int64_t key,
                      KeyOfEmbedding(database_.get(), parameters.collection_uuid, of));
  for (const char* sql : {"DELETE FROM cell_parts WHERE collection = ?1",
                          "UPDATE embeddings SET cell_quality = x'' WHERE collection = ?1"}) {
    PM_ASSIGN_OR_RETURN(Statement clear, database_->Prepare(sql));
    PM_RETURN_IF_ERROR(clear.Bind(1, key).Run());
  }
  PM_ASSIGN_OR_RETURN(
      Statement insert,
      database_->Prepare("INSERT INTO cell_parts (collection, part, bytes) VALUES (?1, ?2, ?3)"));
  for (int64_t part = 0; !image.empty(); ++part) {
    const absl::string_view bytes = image.substr(0, kImagePartBytes);
    image.remove_prefix(bytes.size());
    insert.Bind(1, key).Bind(2, part).BindBlob(3, bytes.data(), bytes.size());
    PM_RETURN_IF_ERROR(insert.Run());
  }
  return transaction.Commit();
}

absl::Status SqliteStore::SaveQuality(const PublicParameters& parameters,
                                      const EmbeddingVersion& of, const CellQuality& quality) {
  const std::string bytes = EncodeQuality(quality);
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, BeginWrite());
  PM_ASSIGN_OR_RETURN(const int64_t key,
                      KeyOfEmbedding(database_.get(), parameters.collection_uuid, of));
  PM_ASSIGN_OR_RETURN(
      Statement save,
      database_->Prepare("UPDATE embeddings SET cell_quality = ?2 WHERE collection = ?1"));
  PM_RETURN_IF_ERROR(save.Bind(1, key).BindBlob(2, bytes.data(), bytes.size()).Run());
  return transaction.Commit();
}

absl::StatusOr<std::optional<StoredCells>> SqliteStore::LoadCells(
    const PublicParameters& parameters, const EmbeddingVersion& of, SizeCheck check) {
  PM_ASSIGN_OR_RETURN(const Reader reader, BeginRead());
  const absl::StatusOr<int64_t> key = KeyOfEmbedding(reader.get(), parameters.collection_uuid, of);
  if (absl::IsAborted(key.status())) return std::nullopt;
  PM_RETURN_IF_ERROR(key.status());
  PM_ASSIGN_OR_RETURN(
      Statement head,
      reader->Prepare("SELECT cell_quality, (SELECT coalesce(sum(length(bytes)), 0) FROM "
                      "cell_parts WHERE collection = ?1) FROM embeddings WHERE collection = ?1"));
  PM_RETURN_IF_ERROR(head.Bind(1, *key).Step().status());
  const int64_t size = head.Int(1);
  if (size == 0) return std::nullopt;
  PM_RETURN_IF_ERROR(check(size));
  StoredCells cells;
  auto quality = DecodeQuality(head.Bytes(0), parameters.cell_partitions.size());
  if (!quality.ok()) return Damaged(*reader.get(), quality.status().message());
  cells.quality = *std::move(quality);
  cells.image.reserve(static_cast<size_t>(size));
  PM_ASSIGN_OR_RETURN(
      Statement select,
      reader->Prepare("SELECT bytes FROM cell_parts WHERE collection = ?1 ORDER BY part"));
  select.Bind(1, *key);
  while (true) {
    PM_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return cells;
    absl::StrAppend(&cells.image, select.Bytes(0));
  }
}

}  // namespace privatemail::server
