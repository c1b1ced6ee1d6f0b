// SqliteStore: deletion of collections. The collection goes in one small transaction, its rows in
// many, which bounds the wait of other calls and the space on an almost full disk.
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite/sqlite_store.h"

namespace privatemail::server {
namespace {

using sqlite::Statement;
using sqlite::Transaction;

// Tables with rows of collections, and an indexed column. That of items follows the order of
// insertion, so that whole pages become free.
struct Table {
  const char* name;
  const char* column;
};
constexpr Table kTables[] = {{"items", "version"},
                             {"deletions", "version"},
                             {"embedded_items", "position"},
                             {"embeddings", "collection"}};
constexpr int kRowsAtOnce = 1000;

// std::mutex is not fair: without a pause this thread would mostly get it again.
constexpr absl::Duration kYieldTime = absl::Milliseconds(1);

}  // namespace

absl::StatusOr<uint64_t> SqliteStore::Delete(absl::string_view uuid) {
  PM_ASSIGN_OR_RETURN(const Removed removed, RemoveCollection(uuid));
  // The collection is deleted already. If this fails, the next start removes the rows.
  RemoveRowsOf(removed.key).IgnoreError();
  return removed.items;
}

absl::StatusOr<SqliteStore::Removed> SqliteStore::RemoveCollection(absl::string_view uuid) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_.get()));
  Removed removed;
  PM_ASSIGN_OR_RETURN(removed.key, KeyOf(uuid));
  {
    // Finished before the commit, which an open statement would block.
    PM_ASSIGN_OR_RETURN(Statement count,
                        database_->Prepare("SELECT items FROM collections WHERE key = ?1"));
    PM_RETURN_IF_ERROR(count.Bind(1, removed.key).Step().status());
    removed.items = static_cast<uint64_t>(count.Int(0));
  }
  PM_ASSIGN_OR_RETURN(Statement remove,
                      database_->Prepare("DELETE FROM collections WHERE key = ?1"));
  PM_RETURN_IF_ERROR(remove.Bind(1, removed.key).Run());
  PM_RETURN_IF_ERROR(transaction.Commit());
  return removed;
}

absl::Status SqliteStore::RemoveRowsOf(int64_t key) {
  for (const Table& table : kTables) {
    const std::string part = absl::StrCat(
        "DELETE FROM ", table.name, " WHERE collection = ?1 AND ", table.column, " IN (SELECT ",
        table.column, " FROM ", table.name, " WHERE collection = ?1 LIMIT ", kRowsAtOnce, ")");
    while (true) {
      PM_ASSIGN_OR_RETURN(const int64_t removed, RemovePart(part, key));
      if (removed < kRowsAtOnce) break;
      absl::SleepFor(kYieldTime);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> SqliteStore::RemovePart(const std::string& sql, int64_t key) {
  const std::lock_guard<std::mutex> guard(mutex_);
  PM_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_.get()));
  PM_ASSIGN_OR_RETURN(Statement remove, database_->Prepare(sql));
  PM_RETURN_IF_ERROR(remove.Bind(1, key).Run());
  PM_RETURN_IF_ERROR(transaction.Commit());
  return database_->changes();
}

absl::Status SqliteStore::RemoveOrphanRows() {
  for (const Table& table : kTables) {
    PM_ASSIGN_OR_RETURN(int64_t key, NextOrphanKey(table.name, 0));
    while (key != 0) {
      PM_RETURN_IF_ERROR(RemoveRowsOf(key));
      PM_ASSIGN_OR_RETURN(key, NextOrphanKey(table.name, key));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> SqliteStore::NextOrphanKey(absl::string_view table, int64_t after) {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (int64_t key = after;;) {
    PM_ASSIGN_OR_RETURN(Statement next,
                        database_->Prepare(absl::StrCat("SELECT min(collection), min(collection) "
                                                        "IN (SELECT key FROM collections) FROM ",
                                                        table, " WHERE collection > ?1")));
    PM_RETURN_IF_ERROR(next.Bind(1, key).Step().status());
    key = next.Int(0);
    if (key == 0 || next.Int(1) == 0) return key;  // none: null reads as 0
  }
}

}  // namespace privatemail::server
