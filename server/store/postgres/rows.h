// Between rows of the PostgreSQL store's tables and what they stand for. Called by PostgresStore
// within a transaction; errors as postgres::Connection, DATA_LOSS too when a row is not what the
// schema promises.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_ROWS_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/postgres/pool.h"
#include "server/store/store.h"
#include "server/store/types.h"

namespace privatemail::server::postgres {

// A collection's row. Which lock it is read under decides who may go on meanwhile:
enum class RowLock {
  kNone,
  kKeepAlive,  // the collection cannot be deleted before this transaction ends
  kChange,     // and nobody else changes its items or its embedding
  kDelete,     // nor can anybody else keep it alive
};
struct CollectionRow {
  int64_t key = 0;
  int64_t items = 0;
  int64_t latest_version = 0;
};
// NOT_FOUND.
absl::StatusOr<CollectionRow> FindCollection(Transaction* transaction, absl::string_view uuid,
                                             RowLock lock);

// A transaction that begins by finding its collection: read only without a lock. Errors of both.
struct CollectionTransaction {
  Transaction transaction;
  CollectionRow collection;
};
absl::StatusOr<CollectionTransaction> BeginWithCollection(Pool* pool, absl::string_view uuid,
                                                          RowLock lock);

// Key and versions of a collection's embedding; zeros before the first.
struct EmbeddingRow {
  int64_t key = 0;
  int64_t version = 0;
  int64_t items_version = 0;
};
absl::StatusOr<EmbeddingRow> FindEmbedding(Transaction* transaction, int64_t collection);

// What ReadCollection reads, out of the table collections.
inline constexpr char kCollectionColumns[] =
    "name, parameters, anchor_features, anchor_labels, items, latest_version, key";
absl::StatusOr<StoredCollection> ReadCollection(const Result& result, int row);

// What ReadItem reads, out of the table items, with features or without.
absl::string_view ItemColumns(bool with_features);
absl::StatusOr<Item> ReadItem(const Result& result, int row, int64_t feature_dim,
                              bool with_features);

// Items in the order of ids: `count` of them from number `first` on.
struct ItemRange {
  int64_t first = 0;
  int64_t count = 0;
};
// Items of the collection, as Store::ReadGallery hands them over; how many there are in all is
// range.count.
absl::Status ReadItems(Transaction* transaction, const CollectionRow& collection,
                       const ItemRange& range, int64_t feature_dim, Store::GalleryVisitor visit);

// Ids, labels, payloads and coordinates of the embedding with this key.
absl::Status WriteEmbeddedItems(Transaction* transaction, int64_t key, const Embedding& embedding);
absl::Status ReadEmbeddedItems(Transaction* transaction, int64_t key, int64_t embedding_dim,
                               Embedding* embedding);

// Ids of items that were there at `items_version` and were deleted since, and after the version
// `after`.
absl::StatusOr<std::vector<std::string>> ReadDeletedSince(Transaction* transaction,
                                                          int64_t collection, int64_t items_version,
                                                          int64_t after);

// Tells every daemon that watches, when the transaction commits.
absl::Status Notify(Transaction* transaction, absl::string_view uuid);
inline constexpr char kChannel[] = "privatemail_changes";

// DATA_LOSS that says where, out of one of decode.h's that does not.
absl::Status Place(const absl::Status& status);

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_ROWS_H_
