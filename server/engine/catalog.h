// The catalog of a daemon's collections: in memory for searches, in the store durably.
#ifndef PRIVATEMAIL_SERVER_ENGINE_CATALOG_H_
#define PRIVATEMAIL_SERVER_ENGINE_CATALOG_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/cells_preparer.h"
#include "server/engine/collection_creation.h"
#include "server/engine/collection_registry.h"
#include "server/engine/embed.h"
#include "server/engine/store_synchronizer.h"
#include "server/store/store.h"

namespace privatemail::server {

// Runs at most one build of a collection at a time, at low priority. Thread-safe.
//   - Find and List wait for a map lookup at most, never for a build or a write.
//   - A build replaces the retriever atomically; running searches keep theirs.
//   - Writes to items show after the next build, except deletions, which hide an item at once.
//   - Changes of other daemons on the store are taken over when the store reports them.
// Errors of the store pass through. Methods of a CollectionView concern this very collection, not a
// later one of its name; they return NOT_FOUND after it was deleted.
class Catalog {
 public:
  // kAsBefore: kOff if the last build by this Catalog that was not kAsBefore was, else kOn.
  enum class LabelCheck { kOff, kOn, kAsBefore };

  // Called from another thread: why changes of other daemons cannot be read, or OK after recovery.
  using RefreshReport = std::function<void(const absl::Status&)>;

  // Loads all collections with their embeddings; cell indexes follow in the background. Both in
  // ascending order of items. A collection with a damaged embedding, or one beyond
  // max_resident_memory, is not built. directory: for scratch files of builds and snapshots.
  static absl::StatusOr<std::unique_ptr<Catalog>> Open(std::unique_ptr<Store> store,
                                                       std::string directory,
                                                       RefreshReport report = nullptr,
                                                       const CatalogOptions& options = {},
                                                       CellsPreparer::Warn warn = nullptr);

  // Messages about embeddings that Open could not read.
  const std::vector<std::string>& problems() const { return problems_; }
  void SetOptions(const CatalogOptions& options) { registry_.SetOptions(options); }
  const std::string& directory() const { return directory_; }
  // The cache serves the searchers of all collections.
  EvaluationKeyCache& evaluation_keys() const { return registry_.evaluation_keys(); }
  // Caches the keys, in place of the least recently used ones where max_resident_memory demands it.
  // False: the collections leave no room for them.
  bool CacheEvaluationKeys(const std::string& digest, EvaluationKeyCache::Handle keys) const {
    return registry_.CacheEvaluationKeys(digest, std::move(keys));
  }

  // As in Store.
  bool read_only() const { return store_->read_only(); }
  absl::Status TryWritable() { return store_->TryWritable(); }

  // NOT_FOUND.
  absl::StatusOr<CollectionView> Find(absl::string_view name) const { return registry_.Find(name); }
  std::vector<CollectionView> List() const { return registry_.List(); }  // by name

  // INVALID_ARGUMENT naming the field; ALREADY_EXISTS; RESOURCE_EXHAUSTED: max_resident_memory;
  // CANCELLED: nothing was created. Cost: a k-means of the anchors for each partition, and one for
  // the codebook of a pq code.
  absl::StatusOr<CollectionView> Create(NewCollection collection,
                                        const CancelledFunction& cancelled = nullptr);

  // Restores a snapshot under collection.name, completely or not at all; it is not built. It keeps
  // its UUID unless the store has it; then it gets a new one and so another fingerprint. `items`
  // may be read twice. INVALID_ARGUMENT: the name; ALREADY_EXISTS; RESOURCE_EXHAUSTED:
  // max_resident_memory; DATA_LOSS: the parts of the snapshot are inconsistent; ABORTED: another
  // daemon deleted it at once.
  absl::StatusOr<CollectionView> Restore(StoredCollection collection, Store::GallerySource items);

  // INVALID_ARGUMENT or ALREADY_EXISTS: the name, as far as this daemon knows.
  absl::Status CheckNewName(absl::string_view name) const;

  // Returns the number of deleted items. A running build ends with ABORTED. NOT_FOUND.
  absl::StatusOr<uint64_t> Delete(absl::string_view name) { return synchronizer_.Delete(name); }

  // One durable batch each. The first valid item of a collection without a dimension fixes it.
  absl::StatusOr<UpsertResult> Upsert(const CollectionView& collection,
                                      absl::Span<const Item> items);
  absl::StatusOr<DeleteResult> DeleteItems(const CollectionView& collection,
                                           absl::Span<const std::string> ids);

  // As in Store.
  absl::Status ReadGallery(const CollectionView& collection, Store::GalleryVisitor visit) const;
  absl::StatusOr<std::vector<Item>> GetItems(const CollectionView& collection,
                                             absl::Span<const std::string> ids) const;
  absl::StatusOr<ItemPage> ScrollItems(const CollectionView& collection,
                                       const std::optional<PayloadFilter>& filter,
                                       absl::string_view after, int64_t limit) const;
  absl::StatusOr<uint64_t> CountItems(const CollectionView& collection,
                                      const std::optional<PayloadFilter>& filter,
                                      const std::function<bool()>& cancelled) const;
  absl::StatusOr<ChangesSinceEmbedding> CountChanges(const CollectionView& collection) const;

  // Embeds the stored items and installs the embedding.
  //   observer:  called with 0 before the work and after each step; its error ends the build and
  //              leaves the former embedding in place.
  //   memory:    maximum bytes. If build_memory exceeds it, features are spooled to a file; the
  //              result is the same.
  //   label_check: with kOn, what CheckLabelsAgree refuses is refused.
  // NOT_FOUND. FAILED_PRECONDITION: no anchors or items, of Embed, or of CheckLabelsAgree. ABORTED:
  // a build is running, the collection was deleted, or another daemon has embedded later items.
  // RESOURCE_EXHAUSTED: memory, max_resident_memory or disk.
  absl::StatusOr<CollectionView> Build(absl::string_view name, const StepObserver& observer,
                                       int64_t memory = std::numeric_limits<int64_t>::max(),
                                       LabelCheck label_check = LabelCheck::kOff);

 private:
  Catalog(std::unique_ptr<Store> store, std::string directory, CellsPreparer::Warn warn);
  // The collection with a dimension, unless it has none and no item is valid. NOT_FOUND.
  absl::StatusOr<std::shared_ptr<const PublishedCollection>> FixDimension(
      const CollectionView& collection, absl::Span<const Item> items);
  // kAsBefore resolved; the others are remembered.
  LabelCheck ResolveLabelCheck(const CollectionView& view, LabelCheck label_check);
  absl::Status RunBuild(const CollectionRegistry::EntryPtr& entry, const StepObserver& observer,
                        int64_t memory, LabelCheck label_check);
  absl::StatusOr<Embedding> EmbedStored(const CollectionView& view, const StepObserver& observer,
                                        int64_t memory, LabelCheck label_check);

  const std::unique_ptr<Store> store_;
  const std::string directory_;
  std::vector<std::string> problems_;  // unchanged after Open
  CollectionRegistry registry_;
  std::mutex unchecked_mutex_;
  std::set<std::string> unchecked_;  // uuids of collections whose last build was kOff
  CellsPreparer preparer_;
  StoreSynchronizer synchronizer_;
  std::unique_ptr<ChangeWatch> watch_;  // last: it uses the other members
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_CATALOG_H_
