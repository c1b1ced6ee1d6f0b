// Collections, their items and their embeddings in one SQLite file.
#ifndef PRIVATEMAIL_SERVER_STORE_SQLITE_SQLITE_STORE_H_
#define PRIVATEMAIL_SERVER_STORE_SQLITE_SQLITE_STORE_H_

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

// The file `privatemail.sqlite` of a data directory, held under a lock against other daemons, with
// a write-ahead log and synchronous=FULL. One call at a time, the others wait; an import and the
// deletion of a collection are many of them, and galleries are read beside. An upsert takes about
// 10 us an item. Messages name the file.
class SqliteStore final : public Store {
 public:
  // FAILED_PRECONDITION: the directory is locked by another daemon, cannot be made or written, or
  // holds a database of a newer version. DATA_LOSS: the file is no database or is damaged.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const std::string& directory);
  ~SqliteStore() override;

  absl::StatusOr<std::vector<StoredCollection>> LoadCollections() override;
  absl::StatusOr<StoredCollection> LoadCollection(absl::string_view uuid) override;
  absl::StatusOr<std::vector<CollectionState>> ListStates() override;
  absl::Status Create(const StoredCollection& collection) override;
  // The collection is gone for everybody, crashes included, before its rows are removed in parts.
  // Those that a full disk or a crash leaves go when the store is opened again.
  absl::StatusOr<uint64_t> Delete(absl::string_view uuid) override;
  absl::StatusOr<UpsertResult> Upsert(const PublicParameters& parameters,
                                      absl::Span<const Item> items) override;
  absl::StatusOr<DeleteResult> DeleteItems(const PublicParameters& parameters,
                                           absl::Span<const std::string> ids) override;
  absl::StatusOr<std::vector<Item>> GetItems(const PublicParameters& parameters,
                                             absl::Span<const std::string> ids) override;
  absl::Status ReadGallery(const PublicParameters& parameters, GalleryVisitor visit) override;
  absl::StatusOr<uint64_t> SaveEmbedding(const PublicParameters& parameters,
                                         const Embedding& embedding) override;
  absl::StatusOr<std::optional<Embedding>> LoadEmbedding(
      const PublicParameters& parameters) override;
  absl::StatusOr<std::optional<std::vector<std::string>>> DeletedSince(
      const PublicParameters& parameters, uint64_t embedding_version, uint64_t after) override;
  absl::StatusOr<ChangesSinceEmbedding> CountChanges(const PublicParameters& parameters) override;
  // Nobody else holds the directory: null.
  std::unique_ptr<ChangeWatch> Watch(std::function<absl::Status()> /*changed*/,
                                     std::function<void(const absl::Status&)> /*report*/) override {
    return nullptr;
  }

 protected:
  absl::Status ImportParts(const StoredCollection& collection, GallerySource source) override;
  absl::Status ScanItems(const PublicParameters& parameters, absl::string_view after, int64_t limit,
                         bool with_features, absl::FunctionRef<bool(Item)> visit) override;

 private:
  struct EmbeddingVersions {
    int64_t version = 0;  // 0 before the first
    int64_t items_version = 0;
  };

  SqliteStore(DirectoryLock lock, std::unique_ptr<sqlite::Database> database)
      : lock_(std::move(lock)), database_(std::move(database)) {}

  // The number that stands for a collection inside the file. NOT_FOUND.
  absl::StatusOr<int64_t> KeyOf(absl::string_view uuid);
  static absl::StatusOr<int64_t> KeyOf(sqlite::Database* database, absl::string_view uuid);
  absl::StatusOr<EmbeddingVersions> VersionsOf(int64_t key);

  // The parts of an import: a key that is given to no other collection, and items under it and the
  // collection.
  absl::StatusOr<int64_t> ReserveKey(const StoredCollection& collection);
  absl::Status ImportInto(int64_t key, const StoredCollection& collection, GallerySource source);

  // The parts of a deletion; the second is what becomes of an import that fails, too.
  struct Removed {
    int64_t key = 0;
    uint64_t items = 0;
  };
  absl::StatusOr<Removed> RemoveCollection(absl::string_view uuid);
  absl::Status RemoveRowsOf(int64_t key);
  // Returns how many rows went. sql: what removes some of those of a collection.
  absl::StatusOr<int64_t> RemovePart(const std::string& sql, int64_t key);
  // Of imports and deletions that did not come to their end. While none is under way.
  absl::Status RemoveRowsOfNoCollection();
  // The least key after `after` in a table that no collection has; 0: none.
  absl::StatusOr<int64_t> NextKeyOfNone(absl::string_view table, int64_t after);

  DirectoryLock lock_;  // outlives the connection
  std::mutex mutex_;    // guards the connection
  std::unique_ptr<sqlite::Database> database_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_SQLITE_SQLITE_STORE_H_
