// Collections, their items and their embeddings in one SQLite file.
#ifndef PRIVATEMAIL_SERVER_STORE_SQLITE_STORE_H_
#define PRIVATEMAIL_SERVER_STORE_SQLITE_STORE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/protocol/public_parameters.h"
#include "common/sqlite/sqlite.h"
#include "server/store/directory_lock.h"
#include "server/store/types.h"

namespace privatemail {

// The file `privatemail.sqlite` of a data directory, held under a lock against other daemons. Every
// method that writes is one transaction: when it returns OK, what it wrote survives kill -9 and a
// loss of power (write-ahead log, synchronous=FULL); otherwise nothing was written. Thread-safe:
// one call at a time, the others wait. Answering a search must therefore not read the store.
//
// A collection is named by its UUID (parameters.collection_uuid), so that a name that was deleted
// and made again is not mistaken for the old one. Beside what each method lists, every one may
// return DATA_LOSS (the file is damaged), RESOURCE_EXHAUSTED (disk full) and INTERNAL, all naming
// the file.
class SqliteStore {
 public:
  // FAILED_PRECONDITION: the directory is locked by another daemon, cannot be made or written, or
  // holds a database of a newer version. DATA_LOSS: the file is no database or is damaged.
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const std::string& directory);

  // All collections, by name. Checks the anchors against their digest.
  absl::StatusOr<std::vector<StoredCollection>> LoadCollections();

  // ALREADY_EXISTS: the name is taken.
  absl::Status Create(const StoredCollection& collection);

  // Deletes a collection with all that belongs to it; returns how many items it had. NOT_FOUND.
  absl::StatusOr<uint64_t> Delete(absl::string_view uuid);

  // Inserts or replaces by id, in order, as one transaction. An item equal to the stored one is
  // left alone; a malformed one is rejected alone (CheckItem). NOT_FOUND. About 10 us an item.
  absl::StatusOr<UpsertResult> Upsert(const PublicParameters& parameters,
                                      absl::Span<const Item> items);

  // NOT_FOUND.
  absl::StatusOr<Gallery> LoadGallery(const PublicParameters& parameters);

  // Replaces the collection's embedding; returns the version it gave to the new one. NOT_FOUND: the
  // collection was deleted.
  absl::StatusOr<uint64_t> SaveEmbedding(const PublicParameters& parameters,
                                         const Embedding& embedding);

  // Nothing before the first build. NOT_FOUND.
  absl::StatusOr<std::optional<Embedding>> LoadEmbedding(const PublicParameters& parameters);

 private:
  SqliteStore(DirectoryLock lock, std::unique_ptr<sqlite::Database> database)
      : lock_(std::move(lock)), database_(std::move(database)) {}

  // The number that stands for a collection inside the file. NOT_FOUND.
  absl::StatusOr<int64_t> KeyOf(absl::string_view uuid);

  DirectoryLock lock_;  // outlives the connection
  std::mutex mutex_;    // guards the connection
  std::unique_ptr<sqlite::Database> database_;
};

// A random (version 4) UUID from the operating system's generator. INTERNAL when that fails.
absl::StatusOr<std::string> NewUuid();

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_STORE_SQLITE_STORE_H_
