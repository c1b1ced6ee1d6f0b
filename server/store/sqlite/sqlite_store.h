// A collection store in one SQLite file.
#ifndef PRIVATEMAIL_SERVER_STORE_SQLITE_SQLITE_STORE_H_
#define PRIVATEMAIL_SERVER_STORE_SQLITE_SQLITE_STORE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "common/base/descriptor.h"
#include "common/sqlite/sqlite.h"
#include "server/store/sql_store.h"

namespace privatemail::server {

// A store in the file `privatemail.sqlite` of a locked data directory.
// - Durability: write-ahead log, synchronous=FULL.
// - Concurrency: writes are serialized; imports and deletions of collections run in parts. Items,
//   embeddings and cells are read concurrently, from one snapshot a call.
// - An upsert takes about 10 us an item. Errors name the file.
// - Damage: embeddings and cells can be made again, so a damaged page of theirs blocks no write.
//   Their table is set aside then, and the next one takes the rows that can still be read.
// - Full disk: if an existing database cannot be opened for writing, the store is read-only until
//   TryWritable succeeds. Reads then wait for each other.
class SqliteStore final : public SqlStore {
 public:
  // FAILED_PRECONDITION: the directory is locked, cannot be created or written, or has a database
  // of another version. DATA_LOSS: the file is damaged or not a database. RESOURCE_EXHAUSTED: no
  // space for a new database.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const std::string& directory);
  ~SqliteStore() override;

  bool read_only() const override { return read_only_; }
  absl::Status TryWritable() override;

  absl::StatusOr<uint64_t> SaveEmbedding(const PublicParameters& parameters,
                                         const Embedding& embedding) override;
  absl::Status SaveCells(const PublicParameters& parameters, const EmbeddingVersion& of,
                         absl::string_view image) override;
  absl::Status SaveQuality(const PublicParameters& parameters, const EmbeddingVersion& of,
                           const CellQuality& quality) override;
  // Removes the collection durably; its rows are left to RemoveSomeRows, whose parts bound the wait
  // of other calls and the space on an almost full disk. Open finds what a crash has left.
  absl::StatusOr<uint64_t> Delete(absl::string_view uuid) override;
  absl::StatusOr<bool> RemoveSomeRows() override;
  // Null: the directory is locked.
  std::unique_ptr<ChangeWatch> Watch(std::function<absl::Status()> /*changed*/,
                                     std::function<void(const absl::Status&)> /*report*/) override {
    return nullptr;
  }

 protected:
  // Items are inserted in several transactions under a reserved key, so that other calls can run in
  // between. They become visible when the last transaction creates the collection.
  absl::Status ImportParts(const StoredCollection& collection, GallerySource source) override;

  absl::StatusOr<std::unique_ptr<SqlSession>> Begin(bool writes) override;
  absl::Status QueryByIds(SqlSession* session, absl::string_view sql, absl::string_view suffix,
                          int64_t key, absl::Span<const std::string> ids,
                          SqlSession::Visitor visit) override;
  absl::Status InsertRows(SqlSession* session, absl::string_view table, int64_t key,
                          absl::string_view columns, absl::Span<const SqlValue> values,
                          absl::string_view suffix) override;
  absl::StatusOr<int64_t> NewKey(SqlSession* session) override;
  absl::Status WriteEmbeddedItems(SqlSession* session, int64_t key,
                                  const Embedding& embedding) override;
  absl::Status Damaged(absl::string_view what) const override;

 private:
  SqliteStore(Descriptor lock, std::unique_ptr<sqlite::Database> database);

  void SetWritable(const absl::Status& writable);
  absl::StatusOr<uint64_t> DeleteOnce(absl::string_view uuid);
  // The outcome of `write`, which is run again after each table of derived rows that turns out to
  // be damaged.
  template <typename Write>
  auto PastDamage(Write write) -> decltype(write());
  // Whether a page of the table or of its parent is damaged.
  bool IsDamaged(const LargeTable& table);
  // Replaces the table and its parent by new ones, with the rows of each key that can be read. The
  // former ones stay in the file under other names: freeing their pages would read them.
  absl::Status SetAside(const LargeTable& table);
  absl::Status ImportInto(int64_t key, const StoredCollection& collection, GallerySource source);
  void AddRemoval(const LargeTable& table, int64_t key);
  // Removes some rows of a key; false: it has none left.
  absl::StatusOr<bool> RemoveRows(const LargeTable& table, int64_t key);
  // Adds removals of what interrupted imports and deletions have left. Must not run concurrently
  // with either.
  absl::Status FindOrphanRows();

  const Descriptor lock_;  // of the directory; outlives the connection
  const std::string path_;
  std::mutex mutex_;  // guards the following
  std::unique_ptr<sqlite::Database> database_;
  absl::Status read_only_reason_;        // OK: writable
  std::atomic<bool> read_only_ = false;  // read without mutex_
  std::mutex removals_mutex_;
  // Keys that are never given again. Guarded by removals_mutex_.
  std::deque<std::pair<const LargeTable*, int64_t>> removals_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_SQLITE_SQLITE_STORE_H_
