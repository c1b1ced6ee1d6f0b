// Between rows of the embedded store's tables and what they stand for. Called by SqliteStore under
// its lock; errors as sqlite::Database, DATA_LOSS too when a row is not what the schema promises.
#ifndef PRIVATEMAIL_SERVER_STORE_ROWS_H_
#define PRIVATEMAIL_SERVER_STORE_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/sqlite/sqlite.h"
#include "server/store/types.h"

namespace privatemail {

// row: name, parameters, anchor_features, anchor_labels, items. The anchors are checked against
// their digest.
absl::StatusOr<StoredCollection> ReadCollection(const sqlite::Database& database,
                                                const sqlite::Statement& row);

// blob: rows x cols doubles, row-major; `what` names it in the message when it is not.
absl::Status ReadMatrix(const sqlite::Database& database, absl::string_view what,
                        absl::string_view blob, int64_t rows, int64_t cols, Matrix* matrix);

// All items of the collection with this key, ordered by id.
absl::StatusOr<Gallery> ReadGallery(sqlite::Database* database, int64_t key, int64_t feature_dim);

// Ids, labels, payloads and coordinates of an embedding.
absl::Status WriteEmbeddedItems(sqlite::Database* database, int64_t key,
                                const Embedding& embedding);
absl::Status ReadEmbeddedItems(sqlite::Database* database, int64_t key, int64_t embedding_dim,
                               Embedding* embedding);

// Writes items of one collection within one transaction.
class ItemWriter {
 public:
  static absl::StatusOr<ItemWriter> Prepare(sqlite::Database* database, int64_t key);

  // Inserts a checked item, replaces the one with its id or leaves an equal one alone; counts which
  // in `result`.
  absl::Status Write(const Item& item, UpsertResult* result);

 private:
  ItemWriter(int64_t key, sqlite::Statement find, sqlite::Statement insert,
             sqlite::Statement update);

  int64_t key_;
  sqlite::Statement find_;
  sqlite::Statement insert_;
  sqlite::Statement update_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_STORE_ROWS_H_
