// A registry of a daemon's collections in memory.
#ifndef PRIVATEMAIL_SERVER_ENGINE_COLLECTION_REGISTRY_H_
#define PRIVATEMAIL_SERVER_ENGINE_COLLECTION_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
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
#include "server/engine/collection_view.h"
#include "server/engine/evaluation_key_cache.h"
#include "server/store/types.h"

namespace privatemail::server {

// Reloadable. Applies to embeddings that are built or loaded later.
struct CatalogOptions {
  // Approximate maximum of bytes that building a cell index takes.
  int64_t cells_memory = std::numeric_limits<int64_t>::max();
  // Approximate maximum of CollectionView::resident_memory of all collections, and of the
  // evaluation keys of searchers, which make room for collections.
  int64_t resident_memory = std::numeric_limits<int64_t>::max();
};

// Maps names to collections and holds all of their mutable state under one mutex, for the time of a
// map lookup: it never calls the store. Thread-safe.
//
// "Load" below: reading or building a retriever or cell index. During a load the registry records
// deletions, and hides those items in the result, which may still contain them.
class CollectionRegistry {
 public:
  struct Entry;  // one collection; also after its removal
  using EntryPtr = std::shared_ptr<Entry>;

  CatalogOptions options() const;
  void SetOptions(const CatalogOptions& options);

  // RESOURCE_EXHAUSTED naming max_resident_memory: collections would exceed it
  // with `bytes` for `purpose` instead of the `replaced`.
  absl::Status CheckMemory(absl::string_view purpose, int64_t bytes, int64_t replaced = 0) const;
  // Caches the keys, in place of the least recently used ones where max_resident_memory demands it.
  // False: the collections leave no room for them.
  bool CacheEvaluationKeys(const std::string& digest, EvaluationKeyCache::Handle keys) const;
  EvaluationKeyCache& evaluation_keys() const { return evaluation_keys_; }
  // CheckMemory for the retriever of a running build, which counts until EndBuild. Replaces what
  // the build reserved before.
  absl::Status ReserveForBuild(Entry* entry, int64_t bytes);

  // NOT_FOUND.
  absl::StatusOr<CollectionView> Find(absl::string_view name) const;
  std::vector<CollectionView> List() const;  // by name
  CollectionView ViewOf(const Entry& entry) const;
  bool IsRemoved(const Entry& entry) const;

  EntryPtr Add(StoredCollection collection);
  void Remove(absl::string_view name);

  // Publishes the dimension of this very collection, not of a later one of its name, unless it has
  // one. Returns what is published. NOT_FOUND: the collection was removed.
  absl::StatusOr<std::shared_ptr<const PublishedCollection>> SetDimension(
      const PublishedCollection& published, int64_t dimension);

  // Records writes to the items of this very collection, not of a later one of its name.
  void RecordItems(const PublishedCollection& published, uint64_t items, uint64_t latest_version);
  void RecordDeletion(const PublishedCollection& published, uint64_t items, uint64_t latest_version,
                      absl::Span<const std::string> ids);

  // Starts a build, which is a load. NOT_FOUND. ABORTED: a build is running. FAILED_PRECONDITION:
  // no anchors or no items.
  absl::StatusOr<EntryPtr> BeginBuild(absl::string_view name);
  // Makes EndBuild return true.
  void MarkOutdated(Entry* entry);
  // Returns true if another daemon saved an embedding during the build.
  bool EndBuild(Entry* entry);

  // Publishes a retriever unless a later one is there. deleted: items that the store has deleted
  // since its embedding. False: the collection was removed. O(n) if the collection has cells.
  bool InstallRetriever(Entry* entry, std::shared_ptr<const Retriever> retriever,
                        absl::Span<const DeletedItem> deleted);

  // Starts a load of a cell index; empty if it is up to date or the collection was removed.
  std::optional<CollectionView> BeginCells(Entry* entry);
  // deleted: items that were deleted before BeginCells, if `cells` may have them.
  void InstallCells(Entry* entry, const std::shared_ptr<const CellIndex>& cells,
                    absl::Span<const std::string> deleted = {});
  void EndCells(Entry* entry, const absl::Status& problem);
  void SetEmbeddingProblem(Entry* entry, const absl::Status& problem);
  // Publishes the quality of `cells` unless they have been replaced.
  void InstallQuality(Entry* entry, const CellIndex* cells,
                      std::shared_ptr<const CellQuality> quality);

  // Removes collections that are not in `states`, and returns the states that are not here.
  std::vector<CollectionState> RemoveUnlisted(const std::vector<CollectionState>& states);

  // Whether another daemon has fixed a dimension that this one does not know: it has written items.
  // Then the collection as it is published here; otherwise null.
  std::shared_ptr<const PublishedCollection> FindWithoutDimension(
      const CollectionState& state) const;

  // A change of another daemon that is to be read from the store.
  struct PendingChange {
    EntryPtr entry;
    bool new_embedding = false;                  // true: a load, to be ended by EndLoad
    std::shared_ptr<const Retriever> retriever;  // whose deletions `after` this version are pending
    uint64_t after = 0;
  };
  // Takes over the counts of a state. Empty if nothing else is to be read now.
  std::optional<PendingChange> Compare(const CollectionState& state);
  void EndLoad(Entry* entry);
  // Hides items that another daemon deleted, up to this version, unless the retriever has been
  // replaced.
  void AdoptDeletions(const PendingChange& change, uint64_t latest_version,
                      absl::Span<const DeletedItem> deleted);

 private:
  // Requires mutex_.
  int64_t CollectionMemoryLocked() const;
  absl::Status CheckMemoryLocked(absl::string_view purpose, int64_t bytes, int64_t replaced) const;

  // All of the following require mutex_.
  EntryPtr FindEntry(const PublishedCollection& published) const;  // null: not here
  static void SetItems(uint64_t items, uint64_t latest_version, Entry* entry);
  // In what was made of earlier items: a later one may have an item again.
  static void Hide(absl::Span<const DeletedItem> deleted, Entry* entry);
  // For what is being loaded from an earlier state of the store.
  static void RecordDuringLoads(absl::Span<const DeletedItem> deleted, Entry* entry);
  static void FinishLoad(Entry* entry);

  mutable std::mutex mutex_;  // guards the following and all entries
  std::map<std::string, EntryPtr, std::less<>> entries_;
  CatalogOptions options_;
  mutable EvaluationKeyCache evaluation_keys_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_COLLECTION_REGISTRY_H_
