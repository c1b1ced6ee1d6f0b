// Synchronization of the registry with the store and with other daemons on it.
#ifndef PRIVATEMAIL_SERVER_ENGINE_STORE_SYNCHRONIZER_H_
#define PRIVATEMAIL_SERVER_ENGINE_STORE_SYNCHRONIZER_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/cells_preparer.h"
#include "server/engine/collection_registry.h"
#include "server/engine/rows_loader.h"
#include "server/store/store.h"
#include "server/store/types.h"

namespace privatemail::server {

// Applies changes of collections and embeddings to store and registry, and takes over those of
// other daemons. Errors of the store pass through. Thread-safe.
class StoreSynchronizer {
 public:
  // All must outlive it. warn: see RowsLoader.
  StoreSynchronizer(Store* store, CollectionRegistry* registry, CellsPreparer* preparer,
                    RowsLoader::Warn warn)
      : store_(store), registry_(registry), preparer_(preparer), loader_(store, std::move(warn)) {}

  // Loads all collections with their embeddings. Schedules background jobs by ascending number of
  // items. Returns a message for each embedding that is damaged or exceeds max_resident_memory: its
  // collection is not built.
  absl::StatusOr<std::vector<std::string>> Load();

  // ALREADY_EXISTS; CANCELLED: nothing was created.
  absl::StatusOr<CollectionView> Create(StoredCollection collection,
                                        const CancelledFunction& cancelled);
  // Returns the number of deleted items. NOT_FOUND.
  absl::StatusOr<uint64_t> Delete(absl::string_view name);

  // Publishes an embedding that the store has, and schedules its background jobs. deleted: items
  // that the store has deleted since. False: the collection was removed.
  bool Install(const CollectionRegistry::EntryPtr& entry, Embedding embedding,
               absl::Span<const DeletedItem> deleted);

  // After a write to this collection: until it is acknowledged, its encrypted rows, if it has any,
  // are of the present version or a later one, or searches are refused until they are loaded. `of`
  // may be a view from before the write.
  absl::Status CatchUpRows(const PublishedCollection& of);
  // Loads the encrypted rows of a collection, if it has any. After an error the loader goes on.
  void LoadRows(const CollectionView& view);

  // Takes over collections, embeddings, deletions and counts of other daemons. Returns the first
  // error; a collection that cannot be read does not prevent others from being taken over.
  absl::Status Refresh();

 private:
  // RESOURCE_EXHAUSTED: with an embedding of so many bytes, instead of one of `replaced`, the
  // collections would exceed max_resident_memory.
  absl::Status CheckMemory(absl::string_view name, int64_t bytes, int64_t replaced = 0) const;
  absl::Status AdoptCollections(const std::vector<CollectionState>& states);
  // Takes over what the state says; an error with one part of it does not prevent the others.
  absl::Status AdoptState(const CollectionState& state);
  absl::Status AdoptEmbeddingState(const CollectionState& state);
  absl::Status CatchUpRows(const CollectionView& view);
  // Brings encrypted rows up to the state's version.
  absl::Status AdoptRows(const CollectionState& state);
  absl::Status AdoptDimension(const CollectionState& state);
  absl::Status AdoptEmbedding(const CollectionRegistry::EntryPtr& entry);
  absl::Status AdoptDeletions(const CollectionRegistry::PendingChange& change,
                              uint64_t latest_version);

  Store* const store_;
  CollectionRegistry* const registry_;
  CellsPreparer* const preparer_;
  std::mutex refresh_mutex_;         // serializes Refresh; locked before administration_mutex_
  std::mutex administration_mutex_;  // serializes Create, Delete and AdoptCollections
  RowsLoader loader_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_STORE_SYNCHRONIZER_H_
