// Writes of items to the SQLite store.
#ifndef PRIVATEMAIL_SERVER_STORE_SQLITE_ITEM_WRITER_H_
#define PRIVATEMAIL_SERVER_STORE_SQLITE_ITEM_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/sqlite/sqlite.h"
#include "server/store/types.h"

namespace privatemail::server {

// Writes items of one collection in one transaction, each change under the next version. Errors of
// sqlite::Database.
class ItemWriter {
 public:
  static absl::StatusOr<ItemWriter> Prepare(sqlite::Database* database, int64_t key);

  // Inserts or replaces a valid item unless it is equal to the stored one; counts it in `result`.
  absl::Status Write(const Item& item, UpsertResult* result);

  // False: no such item.
  absl::StatusOr<bool> Erase(const std::string& id);

  // Updates the collection's counts. items() and latest_version() are valid afterwards.
  absl::Status Finish();
  uint64_t items() const { return static_cast<uint64_t>(items_); }
  uint64_t latest_version() const { return static_cast<uint64_t>(latest_version_); }

 private:
  ItemWriter(int64_t key, sqlite::Statement find, sqlite::Statement insert,
             sqlite::Statement update, sqlite::Statement erase, sqlite::Statement remember,
             sqlite::Statement finish);

  int64_t key_;
  int64_t items_ = 0;           // of the collection
  int64_t latest_version_ = 0;  // of the collection
  sqlite::Statement find_;
  sqlite::Statement insert_;
  sqlite::Statement update_;
  sqlite::Statement erase_;
  sqlite::Statement remember_;
  sqlite::Statement finish_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_SQLITE_ITEM_WRITER_H_
