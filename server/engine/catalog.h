// The catalog of a daemon's collections: in memory for searches, in the store durably.
#ifndef PRIVATEMAIL_SERVER_ENGINE_CATALOG_H_
#define PRIVATEMAIL_SERVER_ENGINE_CATALOG_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/background_queue.h"
#include "common/base/serial_miss_lru_cache.h"
#include "common/base/stopwatch.h"
#include "common/lattice/evaluator.h"
#include "server/engine/collection.h"
#include "server/engine/collection_creation.h"
#include "server/engine/embed.h"
#include "server/store/store.h"

namespace privatemail::server {

// Searchers' evaluation keys by the SHA-256 of their serialised form, which tell nothing about
// targets (PRIVACY.md section 9). Owners are the ids of access keys.
using EvaluationKeyCache = SerialMissLruCache<std::string, lattice::EvaluationKeys>;

// Reloadable. Applies to embeddings that are built or loaded later.
struct CatalogOptions {
  // Approximate maximum of bytes that building a cell index takes.
  int64_t cells_memory = std::numeric_limits<int64_t>::max();
  // Approximate maximum of CollectionView::resident_memory of all collections, and of the
  // evaluation keys of searchers, which make room for collections.
  int64_t resident_memory = std::numeric_limits<int64_t>::max();
  // The daemon is a front: it loads no rows, embeddings or cells. Not reloadable.
  bool is_front = false;
};

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

  // Called from other threads: about cells that are damaged or cannot be stored, which are answered
  // all the same, and about encrypted rows that cannot be loaded.
  using Warn = std::function<void(const std::string& message)>;
  // Called from another thread: why changes of other daemons cannot be read, or OK after recovery.
  using RefreshReport = std::function<void(const absl::Status&)>;

  // Loads all collections with their embeddings; cell indexes follow in the background. Both in
  // ascending order of items. A collection with a damaged embedding, or one beyond
  // resident_memory, is not built. directory: for scratch files of builds and snapshots.
  static absl::StatusOr<std::unique_ptr<Catalog>> Open(std::unique_ptr<Store> store,
                                                       std::string directory,
                                                       RefreshReport report = nullptr,
                                                       const CatalogOptions& options = {},
                                                       Warn warn = nullptr);

  // Messages about embeddings that Open could not read.
  const std::vector<std::string>& problems() const { return problems_; }
  void SetOptions(const CatalogOptions& options);
  const std::string& directory() const { return directory_; }
  // The cache serves the searchers of all collections: a session uses one set of keys everywhere,
  // and sends it again if it was evicted.
  EvaluationKeyCache& evaluation_keys() const { return evaluation_keys_; }
  // Caches the keys, in place of others where resident_memory demands it. False: the
  // collections leave no room for them.
  bool CacheEvaluationKeys(const std::string& digest, EvaluationKeyCache::Handle keys,
                           const std::string& caller) const;

  // As in Store.
  bool is_shard() const { return store_->is_shard(); }
  bool is_front() const { return options().is_front; }
  bool read_only() const { return store_->read_only(); }
  absl::Status TryWritable() { return store_->TryWritable(); }

  // NOT_FOUND.
  absl::StatusOr<CollectionView> Find(absl::string_view name) const;
  std::vector<CollectionView> List() const;  // by name

  // Follows changes of other daemons no more. Once, by one thread; the store may take a second.
  void StopFollowing() { watch_ = nullptr; }

  // INVALID_ARGUMENT naming the field; ALREADY_EXISTS; RESOURCE_EXHAUSTED: resident_memory;
  // CANCELLED: nothing was created. Cost: a k-means of the anchors for each partition, and one for
  // the codebook of a pq code.
  absl::StatusOr<CollectionView> Create(NewCollection collection,
                                        const CancelledFunction& cancelled = nullptr);

  // Restores a snapshot under collection.name, completely or not at all; it is not built. It keeps
  // its UUID unless the store has it; then it gets a new one and so another fingerprint. `items`
  // may be read twice. INVALID_ARGUMENT: the name; ALREADY_EXISTS; RESOURCE_EXHAUSTED:
  // resident_memory; DATA_LOSS: the parts of the snapshot are inconsistent; ABORTED: another
  // daemon deleted it at once.
  absl::StatusOr<CollectionView> Restore(StoredCollection collection, Store::GallerySource items);

  // INVALID_ARGUMENT or ALREADY_EXISTS: the name, as far as this daemon knows.
  absl::Status CheckNewName(absl::string_view name) const;

  // Returns the number of deleted items. A running build ends with ABORTED. NOT_FOUND.
  absl::StatusOr<uint64_t> Delete(absl::string_view name);

  // One durable batch each. Malformed items are rejected alone (CheckItem). The first valid item of
  // a collection without a dimension fixes it.
  absl::StatusOr<UpsertResult> Upsert(const CollectionView& collection,
                                      absl::Span<const Item> items);
  // INVALID_ARGUMENT: the collection has classes. Other statuses as of Store.
  absl::Status AppendClassNames(const CollectionView& collection,
                                const std::vector<std::string>& names);
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
  //   version:     of the embedding; 0: the next. On a shard that of a front, NewEmbeddingVersion,
  //                with which all shards build: the embedding is installed when all have theirs.
  // NOT_FOUND. FAILED_PRECONDITION: no anchors or items, of Embed, or of CheckLabelsAgree; on a
  // shard also without a version, or with another label graph than the balanced one. ABORTED: a
  // build is running, the collection was deleted, or another daemon has embedded later items.
  // RESOURCE_EXHAUSTED: memory, resident_memory or disk.
  absl::StatusOr<CollectionView> Build(absl::string_view name, const StepObserver& observer,
                                       int64_t memory = std::numeric_limits<int64_t>::max(),
                                       LabelCheck label_check = LabelCheck::kOff,
                                       uint64_t version = 0);
  // As in Store.
  absl::StatusOr<uint64_t> NewEmbeddingVersion() const { return store_->NewEmbeddingVersion(); }

 private:
  using CollectionPtr = std::shared_ptr<Collection>;
  struct CellInputs;

  Catalog(std::unique_ptr<Store> store, std::string directory, Warn warn);

  CatalogOptions options() const;
  absl::StatusOr<std::optional<Embedding>> LoadEmbedding(const PublicParameters& parameters) const;
  CollectionPtr Add(StoredCollection collection);
  // Loads all collections with their embeddings and schedules background jobs.
  absl::Status Load();

  // RESOURCE_EXHAUSTED naming resident_memory: collections would exceed it with `bytes` for
  // `purpose` instead of the `replaced`.
  absl::Status CheckMemory(absl::string_view purpose, int64_t bytes, int64_t replaced = 0) const;
  // Require mutex_.
  int64_t CollectionMemoryLocked() const;
  absl::Status CheckMemoryLocked(absl::string_view purpose, int64_t bytes, int64_t replaced) const;
  // CheckMemory for the retriever of a running build, which counts until EndBuild. Replaces what
  // the build reserved before.
  absl::Status ReserveForBuild(Collection* collection, int64_t bytes);

  // Takes over collections, embeddings, deletions and counts of other daemons. Returns the first
  // error; a collection that cannot be read does not prevent others from being taken over.
  absl::Status Refresh();
  absl::Status AdoptCollections(const std::vector<CollectionState>& states);
  // Takes over what the state says; an error with one part of it does not prevent the others.
  absl::Status AdoptState(const CollectionState& state);
  absl::Status AdoptParameters(const CollectionState& state, const CollectionView& view);
  // The dimension and class names that the store has.
  absl::Status LoadParameters(const CollectionView& view);
  absl::Status AdoptChange(const CollectionState& state, const CollectionPtr& collection);
  absl::Status AdoptEmbedding(const CollectionPtr& collection);
  // Brings encrypted rows up to the state's version.
  absl::Status AdoptRows(const CollectionState& state, const CollectionView& view);

  // The collection with a dimension, unless it has none and no item is valid. NOT_FOUND.
  absl::StatusOr<std::shared_ptr<const PublishedCollection>> FixDimension(
      const CollectionView& collection, absl::Span<const Item> items);
  // After a write, before it is acknowledged.
  absl::Status FollowWrite(const Collection& collection);
  // Brings the encrypted rows of the collection, if it has any, to the present version or a later
  // one, or searches are refused until they are loaded.
  absl::Status CatchUpRows(const CollectionView& view);
  // Catches up in the background, again and again until it succeeds.
  void QueueCatchUp(std::weak_ptr<Collection> collection);
  // Queues the rows of a collection, those of the fewest items first. Tries again after a failure.
  void QueueRows(const CollectionView& view, absl::Duration delay = absl::ZeroDuration());
  // Removes what deletions and failed restores have left in the store, in the background.
  void QueueRemovals();

  absl::Status RunBuild(const CollectionPtr& collection, const StepObserver& observer,
                        int64_t memory, bool check_labels, uint64_t version);
  absl::StatusOr<Embedding> EmbedStored(const CollectionView& view, const StepObserver& observer,
                                        int64_t memory, bool check_labels);
  // Publishes an embedding that the store has, without the items that were deleted since. False:
  // the collection was removed.
  static bool Install(Collection* collection, Embedding embedding);

  // In catalog_cells.cc: completes an installed embedding in the background by a cell index of its
  // items, whose quality is measured afterwards if the collection publishes it. Both are read from
  // the store, or made and stored there: the index once for each embedding, by one of the daemons
  // on the store; the quality, with an index of its own, by each daemon that does not find it.
  //
  // On a shard an index is installed once all shards have stored theirs: an answer shows indexes of
  // one embedding.
  enum class CellsStep {
    kNone,
    kLoadOrBuild,
    kAwaitShards,  // the index is stored; on a queue of its own, since no build must delay it
  };
  // Queues a step, by PrepareCells, for the current retriever, if the collection has cells. While
  // another daemon makes the cells it is queued again. waited: for that daemon; absent: from the
  // job's start on.
  void QueueCells(std::weak_ptr<Collection> collection, CellsStep step = CellsStep::kLoadOrBuild,
                  absl::Duration delay = {}, std::optional<Stopwatch> waited = std::nullopt);
  // Returns the next step and the pause before it: kLoadOrBuild if another daemon makes them, and
  // kMaxWait has not passed; the same step if the store was away; on a shard kAwaitShards after any
  // other failure. Records a failure in the view, unless the store was away; throws nothing.
  std::pair<CellsStep, absl::Duration> PrepareCells(Collection* collection, CellsStep step,
                                                    const Stopwatch& waited,
                                                    const std::atomic<bool>& stopped);
  absl::StatusOr<CellsStep> LoadOrBuildCells(Collection* collection, CollectionView view,
                                             CellsStep step, const Stopwatch& waited,
                                             const std::atomic<bool>& stopped);
  // Installs what the store has; false: nothing. ABORTED: other shards have nothing yet.
  absl::StatusOr<bool> LoadCells(Collection* collection, const CollectionView& view);
  // A front publishes no quality, so that shards measure none.
  bool PublishesQuality(const PublicParameters& parameters) const {
    return parameters.publish_quality && !store_->is_shard();
  }
  // Installs the index, or only stores it on a shard.
  absl::Status BuildCells(Collection* collection, CollectionView view, bool is_stored,
                          const std::atomic<bool>& stopped);
  // Features are in memory if all that the index takes fits into cells_memory, or else in a file.
  absl::StatusOr<CellInputs> ReadCellInputs(const CollectionView& view,
                                            const std::atomic<bool>& stopped) const;
  absl::Status CheckCellMemory(const Collection& collection, const PublicParameters& parameters,
                               const Gallery& gallery) const;
  // Queues MeasureQuality, and stores the result. Ends early if other cells are installed or the
  // collection is removed.
  void QueueMeasurement(Collection* collection, const std::shared_ptr<const CellIndex>& cells,
                        QualitySample sample);
  // Warns unless it is OK or another embedding has replaced theirs.
  void WarnUnlessStored(const PublishedCollection& published, const absl::Status& stored) const;

  const std::unique_ptr<Store> store_;
  const std::string directory_;
  const Warn warn_;
  std::vector<std::string> problems_;  // unchanged after Open
  std::mutex refresh_mutex_;           // serializes Refresh; locked before administration_mutex_
  std::mutex administration_mutex_;    // serializes Delete, AdoptCollections and the end of Create
  mutable std::mutex mutex_;           // guards the following; locked before those of collections
  std::map<std::string, CollectionPtr, std::less<>> collections_;
  CatalogOptions options_;
  mutable EvaluationKeyCache evaluation_keys_;
  // Last: their jobs use the other members. Encrypted rows are loaded at normal priority, because
  // searches are refused until then. Measurements can take minutes.
  BackgroundQueue loads_{BackgroundQueue::Priority::kNormal};
  BackgroundQueue measurements_;
  BackgroundQueue cells_;
  BackgroundQueue awaited_cells_;
  std::unique_ptr<ChangeWatch> watch_;
};

// A filter of a gallery, part by part, for items of an embedding that are not hidden there. The
// gallery must not be older than the embedding; its parts ascend by id. Not thread-safe.
class EmbeddingFilter {
 public:
  // hidden: null: none. Both must outlive it.
  EmbeddingFilter(const Retriever& retriever, const HiddenRows* hidden)
      : retriever_(retriever), hidden_(hidden) {}

  // Removes the other items of the next part. The rest get the labels, payloads and version of the
  // embedding and keep the part's features. All parts: O(n).
  void Keep(Gallery* part);

 private:
  const Retriever& retriever_;
  const HiddenRows* const hidden_;
  int64_t next_ = 0;  // row of the embedding
};

// Takes the payloads of stored contents from their embedding. DATA_LOSS: they are of another one.
absl::Status TakePayloads(const Retriever& retriever, CellContents* contents);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_CATALOG_H_
