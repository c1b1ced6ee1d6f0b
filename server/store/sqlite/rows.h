// Reading and writing of rows of the SQLite store, called under its lock. Errors of
// sqlite::Database; DATA_LOSS also for rows that violate the schema.
#ifndef PRIVATEMAIL_SERVER_STORE_SQLITE_ROWS_H_
#define PRIVATEMAIL_SERVER_STORE_SQLITE_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/sqlite/sqlite.h"
#include "server/store/store.h"
#include "server/store/types.h"

namespace privatemail::server {

// DATA_LOSS naming the file.
absl::Status Damaged(const sqlite::Database& database, absl::string_view what);

// Columns of the table collections for ReadCollection.
inline constexpr char kCollectionColumns[] =
    "name, parameters, anchor_features, anchor_labels, items, latest_version, key";

// row: kCollectionColumns. The anchors are checked against their digest.
absl::StatusOr<StoredCollection> ReadCollection(const sqlite::Database& database,
                                                const sqlite::Statement& row);

// Columns of the table items for ReadItem.
absl::string_view ItemColumns(bool with_features);
absl::StatusOr<Item> ReadItem(const sqlite::Database& database, const sqlite::Statement& row,
                              int64_t feature_dim, bool with_features);

// All items of a collection, as in Store::ReadGallery.
absl::Status ReadItems(sqlite::Database* database, int64_t key, int64_t feature_dim,
                       Store::GalleryVisitor visit);

// Ids, labels, payloads and coordinates of an embedding.
absl::Status WriteEmbeddedItems(sqlite::Database* database, int64_t key,
                                const Embedding& embedding);
absl::Status ReadEmbeddedItems(sqlite::Database* database, int64_t key, int64_t embedding_dim,
                               Embedding* embedding);

// Items that existed at `items_version` and were deleted later, and after version `after`.
absl::StatusOr<std::vector<DeletedItem>> ReadDeletedSince(sqlite::Database* database, int64_t key,
                                                          uint64_t items_version, uint64_t after);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_SQLITE_ROWS_H_
