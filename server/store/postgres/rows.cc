#include "server/store/postgres/rows.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"
#include "server/store/decode.h"
#include "server/store/postgres/values.h"

namespace privatemail::server::postgres {
namespace {

// Rows per statement, which bounds its memory and time.
constexpr int64_t kChunkRows = 5000;

constexpr int kEmbeddedColumns = 6;
constexpr size_t kPieceBytes = size_t{1} << 20;

const char* SqlOf(RowLock lock) {
  switch (lock) {
    case RowLock::kNone:
      return "";
    case RowLock::kKeepAlive:
      return " FOR KEY SHARE";
    case RowLock::kChange:
      return " FOR NO KEY UPDATE";
    case RowLock::kDelete:
      return " FOR UPDATE";
  }
  return "";
}

absl::Status CountsWrong() {
  return Place(absl::DataLossError("a collection counts other items than it has"));
}

// The id of the item before number `first`; empty for 0. Seeks in steps, each within the time of a
// statement.
absl::StatusOr<std::string> IdBefore(Transaction* transaction, const CollectionRow& collection,
                                     int64_t first) {
  std::string id;
  for (int64_t left = first; left > 0;) {
    const int64_t hop = std::min(left, kChunkRows);
    PM_ASSIGN_OR_RETURN(
        const Result found,
        transaction->Query("SELECT id FROM items WHERE collection = $1 AND id > $2 "
                           "ORDER BY id OFFSET $3 LIMIT 1",
                           Parameters().Int(collection.key).Bytes(id).Int(hop - 1)));
    if (found.rows() == 0) return CountsWrong();
    id = std::string(found.Bytes(0, 0));
    left -= hop;
  }
  return id;
}

}  // namespace

absl::Status Place(const absl::Status& status) {
  if (status.ok()) return status;
  return OperatorOnlyError(absl::DataLossError(absl::StrCat(
      "the store's database is damaged (", status.message(), "): restore it from a backup")));
}

absl::StatusOr<CollectionRow> FindCollection(Transaction* transaction, absl::string_view uuid,
                                             RowLock lock) {
  PM_ASSIGN_OR_RETURN(
      const Result found,
      transaction->Query(absl::StrCat("SELECT key, items, latest_version FROM collections "
                                      "WHERE uuid = $1",
                                      SqlOf(lock)),
                         Parameters().Text(uuid)));
  if (found.rows() == 1) return CollectionRow{found.Int(0, 0), found.Int(0, 1), found.Int(0, 2)};
  return NoSuchCollection(uuid);
}

absl::StatusOr<CollectionTransaction> BeginWithCollection(Pool* pool, absl::string_view uuid,
                                                          RowLock lock) {
  const Transaction::Kind kind =
      lock == RowLock::kNone ? Transaction::Kind::kRead : Transaction::Kind::kWrite;
  PM_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(pool, kind));
  PM_ASSIGN_OR_RETURN(const CollectionRow collection, FindCollection(&transaction, uuid, lock));
  return CollectionTransaction{std::move(transaction), collection};
}

absl::StatusOr<EmbeddingRow> FindEmbedding(Transaction* transaction, int64_t collection) {
  PM_ASSIGN_OR_RETURN(
      const Result found,
      transaction->Query("SELECT key, version, items_version FROM embeddings WHERE collection = $1",
                         Parameters().Int(collection)));
  if (found.rows() == 0) return EmbeddingRow{};
  return EmbeddingRow{found.Int(0, 0), found.Int(0, 1), found.Int(0, 2)};
}

absl::StatusOr<StoredCollection> ReadCollection(const Result& result, int row) {
  absl::StatusOr<StoredCollection> collection = DecodeCollection(
      result.Bytes(row, 0), result.Bytes(row, 1), result.Bytes(row, 2), result.Bytes(row, 3));
  PM_RETURN_IF_ERROR(Place(collection.status()));
  collection->items = static_cast<uint64_t>(result.Int(row, 4));
  collection->latest_version = static_cast<uint64_t>(result.Int(row, 5));
  collection->key = result.Int(row, 6);
  return collection;
}

absl::string_view ItemColumns(bool with_features) {
  return with_features ? "id, label, payload, version, features" : "id, label, payload, version";
}

absl::StatusOr<Item> ReadItem(const Result& result, int row, int64_t feature_dim,
                              bool with_features) {
  Item item;
  item.id = std::string(result.Bytes(row, 0));
  item.label = static_cast<int32_t>(result.Int(row, 1));
  item.payload = std::string(result.Bytes(row, 2));
  item.version = static_cast<uint64_t>(result.Int(row, 3));
  if (!with_features) return item;
  item.features.resize(static_cast<size_t>(feature_dim));
  PM_RETURN_IF_ERROR(
      Place(DecodeFeatures(item.id, result.Bytes(row, 4), feature_dim, item.features.data())));
  return item;
}

absl::Status FollowIndexes(Transaction* transaction) {
  return transaction->Execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off");
}

absl::Status ReadItems(Transaction* transaction, const CollectionRow& collection,
                       const ItemRange& range, int64_t feature_dim, Store::GalleryVisitor visit) {
  const int64_t part_rows = GalleryPartRows(feature_dim);
  PM_RETURN_IF_ERROR(FollowIndexes(transaction));
  PM_ASSIGN_OR_RETURN(std::string after, IdBefore(transaction, collection, range.first));
  int64_t left = range.count;
  do {
    const int64_t wanted = std::min(part_rows, left);
    // Reads beyond the last item, to detect a wrong count.
    const bool ends = wanted == left && range.first + range.count == collection.items;
    PM_ASSIGN_OR_RETURN(
        const Result chunk,
        transaction->Query(
            "SELECT id, label, features, payload FROM items "
            "WHERE collection = $1 AND id > $2 ORDER BY id LIMIT $3",
            Parameters().Int(collection.key).Bytes(after).Int(wanted + (ends ? 1 : 0))));
    if (chunk.rows() != wanted) return CountsWrong();
    left -= chunk.rows();
    Gallery part;
    part.version = static_cast<uint64_t>(collection.latest_version);
    part.collection = collection.key;
    part.features.resize(chunk.rows(), feature_dim);
    for (int row = 0; row < chunk.rows(); ++row) {
      part.ids.emplace_back(chunk.Bytes(row, 0));
      part.labels.push_back(static_cast<int32_t>(chunk.Int(row, 1)));
      PM_RETURN_IF_ERROR(Place(DecodeFeatures(part.ids.back(), chunk.Bytes(row, 2), feature_dim,
                                              part.features.row(row).data())));
      part.payloads.emplace_back(chunk.Bytes(row, 3));
    }
    if (!part.ids.empty()) after = part.ids.back();
    PM_RETURN_IF_ERROR(visit(range.count, std::move(part)));
  } while (left > 0);
  return absl::OkStatus();
}

const char kCopyEmbeddedItems[] =
    "COPY embedded_items (embedding, position, id, label, coordinates, payload) "
    "FROM STDIN (FORMAT binary)";

std::string EmbeddedItemsEncoder::Next() {
  if (done_ == items_.ids.size()) return "";
  CopyRows rows(kEmbeddedColumns);
  for (; done_ < items_.ids.size() && rows.size() < kPieceBytes; ++done_) {
    const auto row = static_cast<Eigen::Index>(done_);
    rows.BeginRow().Int(key_).Int(items_.first + row).Bytes(items_.ids[done_]);
    rows.Int32(items_.labels[done_]);
    rows.Bytes(BytesOf(items_.coordinates->row(row).data(), items_.coordinates->cols()));
    rows.Bytes(items_.payloads[done_]);
  }
  return rows.Take();
}

absl::StatusOr<int64_t> WriteEmbeddedItems(Transaction* transaction, absl::string_view rows) {
  PM_ASSIGN_OR_RETURN(const Result copied, transaction->Copy(kCopyEmbeddedItems, rows));
  int64_t count = 0;
  absl::string_view tag = copied.command();
  if (absl::ConsumePrefix(&tag, "COPY ") && absl::SimpleAtoi(tag, &count)) return count;
  return absl::InternalError("the database does not say how many rows it copied");
}

absl::Status ReadEmbeddedItems(Transaction* transaction, int64_t key, int64_t embedding_dim,
                               Embedding* embedding) {
  PM_ASSIGN_OR_RETURN(const Result counted,
                      transaction->Query("SELECT count(*) FROM embedded_items WHERE embedding = $1",
                                         Parameters().Int(key)));
  const int64_t rows = counted.Int(0, 0);
  embedding->coordinates.resize(rows, embedding_dim);
  for (int64_t first = 0; first < rows; first += kChunkRows) {
    PM_ASSIGN_OR_RETURN(
        const Result chunk,
        transaction->Query("SELECT id, label, coordinates, payload FROM embedded_items WHERE "
                           "embedding = $1 AND position >= $2 AND position < $3 ORDER BY position",
                           Parameters().Int(key).Int(first).Int(first + kChunkRows)));
    if (chunk.rows() != std::min(kChunkRows, rows - first)) {
      return Place(absl::DataLossError("an embedding lacks items"));
    }
    for (int row = 0; row < chunk.rows(); ++row) {
      embedding->ids.emplace_back(chunk.Bytes(row, 0));
      embedding->labels.push_back(static_cast<int32_t>(chunk.Int(row, 1)));
      PM_RETURN_IF_ERROR(
          Place(DecodeCoordinates(embedding->ids.back(), chunk.Bytes(row, 2), embedding_dim,
                                  embedding->coordinates.row(first + row).data())));
      embedding->payloads.emplace_back(chunk.Bytes(row, 3));
    }
  }
  return absl::OkStatus();
}

absl::Status DeleteRows(Transaction* transaction, const LargeTable& table, int64_t key) {
  const auto [name, key_column, order] = table;
  const std::string from =
      absl::StrCat(" FROM ", name, " WHERE ", key_column, " = $1 AND ", order, " > $2");
  for (int64_t after = -1;;) {
    PM_ASSIGN_OR_RETURN(const Result found,
                        transaction->Query(absl::StrCat("SELECT ", order, from, " ORDER BY ", order,
                                                        " OFFSET $3 LIMIT 1"),
                                           Parameters().Int(key).Int(after).Int(kDeletedRows - 1)));
    const int64_t last = found.rows() == 1 ? found.Int(0, 0) : std::numeric_limits<int64_t>::max();
    PM_RETURN_IF_ERROR(transaction
                           ->Query(absl::StrCat("DELETE", from, " AND ", order, " <= $3"),
                                   Parameters().Int(key).Int(after).Int(last))
                           .status());
    if (found.rows() == 0) return absl::OkStatus();
    after = last;
  }
}

absl::StatusOr<std::vector<DeletedItem>> ReadDeletedSince(Transaction* transaction,
                                                          int64_t collection, int64_t items_version,
                                                          int64_t after) {
  PM_ASSIGN_OR_RETURN(
      const Result found,
      transaction->Query("SELECT id, version FROM deletions WHERE collection = $1 AND "
                         "version > greatest($2, $3) AND inserted <= $2 ORDER BY version",
                         Parameters().Int(collection).Int(items_version).Int(after)));
  std::vector<DeletedItem> items;
  for (int row = 0; row < found.rows(); ++row) {
    items.push_back({std::string(found.Bytes(row, 0)), static_cast<uint64_t>(found.Int(row, 1))});
  }
  return items;
}

absl::Status Notify(Transaction* transaction, absl::string_view uuid) {
  return transaction->Query("SELECT pg_notify($1, $2)", Parameters().Text(kChannel).Text(uuid))
      .status();
}

}  // namespace privatemail::server::postgres
