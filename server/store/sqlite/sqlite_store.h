// A collection store in one SQLite file.
#ifndef PRIVATEMAIL_SERVER_STORE_SQLITE_SQLITE_STORE_H_
#define PRIVATEMAIL_SERVER_STORE_SQLITE_SQLITE_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/sqlite/sqlite.h"
#include "server/store/directory_lock.h"
#include "server/store/store.h"

namespace privatemail::server {

// A store in the file `privatemail.sqlite` of a locked data directory.
// - Durability: write-ahead log, synchronous=FULL.
// - Concurrency: writes are serialized; imports and deletions of collections run in parts. Items,
//   embeddings and cells are read concurrently, from one snapshot a call.
// - An upsert takes about 10 us an item. Errors name the file.
// - Full disk: if an existing database cannot be opened for writing, the store is read-only until
//   TryWritable succeeds. Reads then wait for each other.
class SqliteStore final : public Store {
 public:
  // FAILED_PRECONDITION: the directory is locked, cannot be created or written, or has a database
  // of another version. DATA_LOSS: the file is damaged or not a database. RESOURCE_EXHAUSTED: no
  // space for a new database.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const std::string& directory);
  ~SqliteStore() override;

  bool read_only() const override { return read_only_; }
  absl::Status TryWritable() override;

  absl::StatusOr<std::vector<StoredCollection>> LoadCollections() override;
  absl::StatusOr<StoredCollection> LoadCollection(absl::string_view uuid) override;
  absl::StatusOr<std::vector<CollectionState>> ListStates() override;
  absl::Status Create(const StoredCollection& collection) override;
  // Removes the collection durably first, then its rows in parts. Open removes rows that remain
  // after a crash or a full disk.
  absl::StatusOr<uint64_t> Delete(absl::string_view uuid) override;
  absl::StatusOr<int64_t> FixDimension(absl::string_view uuid, int64_t dimension) override;
  absl::StatusOr<UpsertResult> Upsert(const PublicParameters& parameters,
                                      absl::Span<const Item> items) override;
  absl::StatusOr<DeleteResult> DeleteItems(const PublicParameters& parameters,
                                           absl::Span<const std::string> ids) override;
  absl::StatusOr<std::vector<Item>> GetItems(const PublicParameters& parameters,
                                             absl::Span<const std::string> ids) override;
  absl::Status ReadGallery(const PublicParameters& parameters, GalleryVisitor visit) override;
  absl::Status ReadChanges(const PublicParameters& parameters, uint64_t after,
                           ChangesVisitor visit) override;
  absl::StatusOr<uint64_t> SaveEmbedding(const PublicParameters& parameters,
                                         const Embedding& embedding) override;
  absl::StatusOr<std::optional<Embedding>> LoadEmbedding(
      const PublicParameters& parameters) override;
  absl::Status SaveCells(const PublicParameters& parameters, const EmbeddingVersion& of,
                         absl::string_view image) override;
  absl::Status SaveQuality(const PublicParameters& parameters, const EmbeddingVersion& of,
                           const CellQuality& quality) override;
  absl::StatusOr<std::optional<StoredCells>> LoadCells(const PublicParameters& parameters,
                                                       const EmbeddingVersion& of,
                                                       SizeCheck check) override;
  absl::StatusOr<std::optional<std::vector<DeletedItem>>> DeletedSince(
      const PublicParameters& parameters, uint64_t embedding_version, uint64_t after) override;
  absl::StatusOr<ChangesSinceEmbedding> CountChanges(const PublicParameters& parameters) override;
  // Null: the directory is locked.
  std::unique_ptr<ChangeWatch> Watch(std::function<absl::Status()> /*changed*/,
                                     std::function<void(const absl::Status&)> /*report*/) override {
    return nullptr;
  }

 protected:
  absl::Status ImportParts(const StoredCollection& collection, GallerySource source) override;
  absl::Status ScanItems(const PublicParameters& parameters, absl::string_view after, int64_t limit,
                         bool with_features, absl::FunctionRef<bool(Item)> visit) override;

 private:
  SqliteStore(DirectoryLock lock, std::unique_ptr<sqlite::Database> database)
      : lock_(std::move(lock)), database_(std::move(database)) {}

  void SetWritable(const absl::Status& writable);
  // Begins a transaction that writes; the reason if the store is read-only. Requires mutex_.
  absl::StatusOr<sqlite::Transaction> BeginWrite();

  // A snapshot of the file. Writes continue unless the store is read-only.
  class Reader {
   public:
    sqlite::Database* operator->() const { return database_; }
    sqlite::Database* get() const { return database_; }

   private:
    friend class SqliteStore;
    std::unique_lock<std::mutex> lock_;           // of a store that is read-only
    std::unique_ptr<sqlite::Database> separate_;  // of others
    sqlite::Database* database_ = nullptr;
  };
  absl::StatusOr<Reader> BeginRead();

  // The key of a collection in the file. NOT_FOUND.
  absl::StatusOr<int64_t> KeyOf(absl::string_view uuid);
  static absl::StatusOr<int64_t> KeyOf(sqlite::Database* database, absl::string_view uuid);
  static absl::StatusOr<EmbeddingVersion> VersionOf(sqlite::Database* database, int64_t key);
  // The key of a collection whose embedding is `of`. NOT_FOUND, ABORTED.
  static absl::StatusOr<int64_t> KeyOfEmbedding(sqlite::Database* database, absl::string_view uuid,
                                                const EmbeddingVersion& of);

  // The steps of an import: reserve a key, then insert items and the collection.
  absl::StatusOr<int64_t> ReserveKey(const StoredCollection& collection);
  absl::Status ImportInto(int64_t key, const StoredCollection& collection, GallerySource source);

  // The steps of a deletion; a failed import runs the second.
  struct Removed {
    int64_t key = 0;
    uint64_t items = 0;
  };
  absl::StatusOr<Removed> RemoveCollection(absl::string_view uuid);
  absl::Status RemoveRowsOf(int64_t key);
  // Returns the number of deleted rows. sql: deletes some rows of a collection.
  absl::StatusOr<int64_t> RemovePart(const std::string& sql, int64_t key);
  // Removes rows of interrupted imports and deletions. Must not run concurrently with either.
  absl::Status RemoveOrphanRows();
  // The least orphan key after `after` in a table; 0: none.
  absl::StatusOr<int64_t> NextOrphanKey(absl::string_view table, int64_t after);

  DirectoryLock lock_;  // outlives the connection
  std::mutex mutex_;    // guards the following
  std::unique_ptr<sqlite::Database> database_;
  absl::Status read_only_reason_;        // OK: writable
  std::atomic<bool> read_only_ = false;  // read without mutex_
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_SQLITE_SQLITE_STORE_H_
