// Reading and writing of rows of the PostgreSQL store, called in a transaction. Errors of
// postgres::Connection; DATA_LOSS also for rows that violate the schema.
#ifndef PRIVATEMAIL_SERVER_STORE_POSTGRES_ROWS_H_
#define PRIVATEMAIL_SERVER_STORE_POSTGRES_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/matrix.h"
#include "server/store/postgres/pool.h"
#include "server/store/store.h"
#include "server/store/types.h"

namespace privatemail::server::postgres {

// The lock under which a collection's row is read.
enum class RowLock {
  kNone,
  kKeepAlive,  // the collection cannot be deleted during the transaction
  kChange,     // also excludes changes of its items and embedding
  kDelete,     // also excludes kKeepAlive
};
struct CollectionRow {
  int64_t key = 0;
  int64_t items = 0;
  int64_t latest_version = 0;
};
// NOT_FOUND.
absl::StatusOr<CollectionRow> FindCollection(Transaction* transaction, absl::string_view uuid,
                                             RowLock lock);

// A transaction that starts with FindCollection; read only without a lock.
struct CollectionTransaction {
  Transaction transaction;
  CollectionRow collection;
};
absl::StatusOr<CollectionTransaction> BeginWithCollection(Pool* pool, absl::string_view uuid,
                                                          RowLock lock);

// Key and versions of an embedding; zeros before the first.
struct EmbeddingRow {
  int64_t key = 0;
  int64_t version = 0;
  int64_t items_version = 0;
};
absl::StatusOr<EmbeddingRow> FindEmbedding(Transaction* transaction, int64_t collection);

// Columns of the table collections for ReadCollection.
inline constexpr char kCollectionColumns[] =
    "name, parameters, anchor_features, anchor_labels, items, latest_version, key";
absl::StatusOr<StoredCollection> ReadCollection(const Result& result, int row);

// Columns of the table items for ReadItem.
absl::string_view ItemColumns(bool with_features);
absl::StatusOr<Item> ReadItem(const Result& result, int row, int64_t feature_dim,
                              bool with_features);

// Makes the rest of the transaction read in the order of an index. Without statistics, as soon
// after an ingest, the planner would sort all further rows for each part instead.
absl::Status FollowIndexes(Transaction* transaction);

// `count` items from number `first` on, ordered by id.
struct ItemRange {
  int64_t first = 0;
  int64_t count = 0;
};
// Items of a range, as in Store::ReadGallery; range.count is the total.
absl::Status ReadItems(Transaction* transaction, const CollectionRow& collection,
                       const ItemRange& range, int64_t feature_dim, Store::GalleryVisitor visit);

// Consecutive rows of an embedding; views of the caller's.
struct EmbeddedItems {
  int64_t first = 0;  // position in the embedding
  absl::Span<const std::string> ids;
  absl::Span<const int32_t> labels;
  absl::Span<const std::string> payloads;
  const Matrix* coordinates = nullptr;  // may have further rows
};

// Encodes rows in pieces of about a megabyte, each of which a statement takes.
class EmbeddedItemsEncoder {
 public:
  // key: PostgresStore::NewEmbeddingKey.
  EmbeddedItemsEncoder(int64_t key, const EmbeddedItems& items) : key_(key), items_(items) {}

  // "" after the last row.
  std::string Next();

 private:
  const int64_t key_;
  const EmbeddedItems items_;
  size_t done_ = 0;
};

// The statement that takes a piece.
extern const char kCopyEmbeddedItems[];

// rows: of an EmbeddedItemsEncoder. Returns their number.
absl::StatusOr<int64_t> WriteEmbeddedItems(Transaction* transaction, absl::string_view rows);
// Ids, labels, payloads and coordinates of the embedding with this key.
absl::Status ReadEmbeddedItems(Transaction* transaction, int64_t key, int64_t embedding_dim,
                               Embedding* embedding);

// Items that existed at `items_version` and were deleted later, and after version `after`.
absl::StatusOr<std::vector<DeletedItem>> ReadDeletedSince(Transaction* transaction,
                                                          int64_t collection, int64_t items_version,
                                                          int64_t after);

// Rows that one statement of DeleteRows deletes, some seconds of work.
inline constexpr int64_t kDeletedRows = 20'000;

// Tables whose rows can be millions, with the columns of their index. No two rows are equal in
// them.
struct LargeTable {
  const char* name;
  const char* key;
  const char* order;
};
inline constexpr LargeTable kItems{"items", "collection", "version"};
inline constexpr LargeTable kDeletions{"deletions", "collection", "version"};
inline constexpr LargeTable kEmbeddedItems{"embedded_items", "embedding", "position"};

// Deletes all rows of a key, in statements that each end within their time.
absl::Status DeleteRows(Transaction* transaction, const LargeTable& table, int64_t key);

// Delete what is stored for the cells of a collection ($1), in this order.
inline constexpr char kDeleteCellParts[] =
    "DELETE FROM cell_parts WHERE cells IN (SELECT key FROM cells WHERE collection = $1)";
inline constexpr char kDeleteCells[] = "DELETE FROM cells WHERE collection = $1";

// Notifies watching daemons when the transaction commits.
absl::Status Notify(Transaction* transaction, absl::string_view uuid);
inline constexpr char kChannel[] = "privatemail_changes";

// Adds the store to a DATA_LOSS of decode.h.
absl::Status Place(const absl::Status& status);

}  // namespace privatemail::server::postgres

#endif  // PRIVATEMAIL_SERVER_STORE_POSTGRES_ROWS_H_
