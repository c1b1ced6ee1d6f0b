// A collection of a daemon in memory.
#ifndef PRIVATEMAIL_SERVER_ENGINE_COLLECTION_H_
#define PRIVATEMAIL_SERVER_ENGINE_COLLECTION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/embedding/public_parameters.h"
#include "server/cells/cell_index.h"
#include "server/engine/encrypted_collection.h"
#include "server/engine/hidden_rows.h"
#include "server/engine/retriever.h"
#include "server/store/types.h"

namespace privatemail::server {

// The immutable part of a collection.
struct PublishedCollection {
  std::string name;
  PublicParameters parameters;
  std::string fingerprint;  // 32 bytes
  Anchors anchors;
};

class Collection;

// A collection at one moment. What it points to stays valid and, but for `encrypted` and
// `collection`, unchanged.
struct CollectionView {
  std::shared_ptr<const PublishedCollection> published;
  std::shared_ptr<const Retriever> retriever;         // null before the first build
  std::shared_ptr<const HiddenRows> hidden;           // deleted rows of `retriever`; null: none
  std::shared_ptr<const CellIndex> cells;             // null until it is built, and without cells
  std::shared_ptr<const HiddenRows> hidden_in_cells;  // deleted rows of `cells`; null: none
  std::shared_ptr<const CellQuality> quality;         // of `cells`; null until it is measured
  std::shared_ptr<EncryptedCollection> encrypted;     // null unless the collection offers it
  uint64_t items = 0;                                 // stored, embedded or not
  uint64_t latest_version = 0;                        // last change of the store that it includes
  uint64_t adopted_version = 0;                       // deletions by others up to it are hidden
  absl::Status embedding_problem;                     // why a stored embedding is not served
  absl::Status cells_problem;              // why the last attempt to build `cells` failed
  std::shared_ptr<Collection> collection;  // whose view it is

  bool has_cells() const { return !published->parameters.cell_partitions.empty(); }

  // Items that a search can find.
  uint64_t embedded_items() const;

  // Insertions, updates and deletions since the gallery of the embedding.
  uint64_t changes_since_embedding() const;

  // Approximate bytes that a build takes, with features in memory or in a file.
  enum class Features { kInMemory, kInFile };
  int64_t build_memory(Features features) const;

  // Approximate bytes that stay: anchors and parameters, embedding, encrypted rows and cell index,
  // with full caches.
  int64_t resident_memory() const;
};

// Owns the state of one collection, from its creation or the start of the daemon to its removal.
// Holds its mutex for moments and never calls the store. Thread-safe.
//
//   items       counts of the latest version, from writes here and from states of the store
//   embedding   none --BeginBuild--> built here --InstallRetriever--> served --> later versions
//               none --Compare------> read from the store --^         EndBuild, EndLoad: load ends
//   cells       none --BeginCells--> read or built --InstallCells--> served --> later versions
//                                     --InstallQuality--> measured    EndCells: load ends
//   encrypted   EncryptedCollection: loaded, caught up with the store, released
//   removed     Remove, once: nothing is installed any more
//
// "Load": reading or building a retriever or cell index. During a load the collection records
// deletions, and hides those items in the result, which may still contain them.
class Collection : public std::enable_shared_from_this<Collection> {
 public:
  // check: of the memory of encrypted rows; null: they are not held here.
  Collection(StoredCollection stored, EncryptedCollection::MemoryCheck check);

  CollectionView view() const;
  // CollectionView::resident_memory, and what a running build reserves.
  int64_t memory() const;
  bool removed() const { return removed_; }
  // In the store; 0: created here, not reported by the store yet.
  int64_t key() const;
  // Whether the caller is to queue a catch-up of the encrypted rows, because none is queued.
  bool ClaimCatchUp() { return !catch_up_is_queued_.exchange(true); }
  void BeginCatchUp() { catch_up_is_queued_ = false; }
  void Remove() { removed_ = true; }
  // Takes over the key of the collection that the store has now. False: this is an earlier one with
  // its UUID, which a restored collection may have.
  bool TakeKeyOf(const CollectionState& state);

  // Publishes what uploads change of the parameters: the dimension unless the collection has one,
  // and class names unless it has as many. Returns what is published. NOT_FOUND: the collection was
  // removed.
  absl::StatusOr<std::shared_ptr<const PublishedCollection>> Extend(
      int64_t dimension, const std::vector<std::string>& class_names = {});

  // Record writes to the items.
  void RecordItems(uint64_t items, uint64_t latest_version);
  void RecordDeletion(uint64_t items, uint64_t latest_version, absl::Span<const std::string> ids);

  // Starts a build. needs_items: false on a shard, which may have none, and may not have heard yet
  // of those in the store. ABORTED: one is running. FAILED_PRECONDITION: no anchors, or no items
  // although it needs some.
  absl::Status BeginBuild(bool needs_items);
  // The bytes of the build's retriever beyond those of the one that it replaces, until EndBuild.
  void ReserveForBuild(int64_t bytes);
  // Makes EndBuild return true.
  void MarkOutdated();
  // Returns true after MarkOutdated, or if another daemon saved an embedding during the build.
  bool EndBuild();
  // The share of the running build that is done; nullopt: none runs here.
  std::optional<double> build_share() const { return ShareOf(build_share_); }
  void SetBuildShare(double share) { build_share_ = share; }
  // Whether the last build did not check that the labels agree with the anchors.
  std::atomic<bool>& accepts_labels() { return accepts_labels_; }
  // Whether the store had no cells to load when they were looked for.
  std::atomic<bool>& has_no_stored_cells() { return has_no_stored_cells_; }
  // Whether a queued job waits until all shards have stored their cells: one is enough.
  std::atomic<bool>& awaits_cells() { return awaits_cells_; }

  // Publishes a retriever unless a later one is there. deleted: items that the store has deleted
  // since its embedding, up to version `until` of the collection, if that is known. False: the
  // collection was removed. O(n) if the collection has cells.
  bool InstallRetriever(std::shared_ptr<const Retriever> retriever,
                        absl::Span<const DeletedItem> deleted, uint64_t until = 0);
  void SetEmbeddingProblem(const absl::Status& problem);

  // Starts a load of a cell index; empty if it is up to date or the collection was removed.
  std::optional<CollectionView> BeginCells();
  // deleted: items that were deleted before BeginCells, if `cells` may have them.
  void InstallCells(const std::shared_ptr<const CellIndex>& cells,
                    absl::Span<const std::string> deleted = {});
  void EndCells(const absl::Status& problem);
  // The share of building cells, or of measuring them, that is done; nullopt: neither runs here.
  std::optional<double> cells_share() const { return ShareOf(cells_share_); }
  void SetCellsShare(std::optional<double> share) { cells_share_ = share.value_or(-1); }
  // Publishes the quality of `cells` unless they have been replaced.
  void InstallQuality(const CellIndex* cells, std::shared_ptr<const CellQuality> quality);

  // A change of another daemon that is to be read from the store.
  struct PendingChange {
    // Its deletions `after` this version are pending. Null: a new embedding, whose load is to be
    // ended by EndLoad.
    std::shared_ptr<const Retriever> retriever;
    uint64_t after = 0;
  };
  // Takes over the counts of a state. Empty if nothing else is to be read now.
  std::optional<PendingChange> TakeState(const CollectionState& state);
  void EndLoad();
  // Hides items that another daemon deleted, up to this version, unless the retriever has been
  // replaced.
  void AdoptDeletions(const PendingChange& change, uint64_t latest_version,
                      absl::Span<const DeletedItem> deleted);

  // CollectionState.parameters_bytes of the parameters that a refresh has adopted; 0: of none.
  std::atomic<uint64_t> adopted_parameters_bytes = 0;

 private:
  static std::optional<double> ShareOf(double share) {
    return share < 0 ? std::nullopt : std::optional(share);
  }
  // All of the following require mutex_.
  void SetItems(uint64_t items, uint64_t latest_version);
  // Hides items in what was made of earlier versions; a later one may have such an item again.
  void Hide(absl::Span<const DeletedItem> deleted);
  // Keeps deletions for what is being loaded from an earlier state of the store.
  void RecordDuringLoads(absl::Span<const DeletedItem> deleted);
  void FinishLoad();

  std::atomic<bool> removed_ = false;
  std::atomic<bool> catch_up_is_queued_ = false;
  std::atomic<bool> accepts_labels_ = false;
  std::atomic<bool> has_no_stored_cells_ = false;
  std::atomic<bool> awaits_cells_ = false;
  std::atomic<double> build_share_ = -1;  // negative: nullopt, as of the next
  std::atomic<double> cells_share_ = -1;
  mutable std::mutex mutex_;  // guards the following
  CollectionView view_;       // without `collection`
  int64_t key_;
  int loads_ = 0;
  std::vector<DeletedItem> deletions_;  // during loads
  bool building_ = false;
  int64_t reserved_ = 0;
  bool outdated_ = false;  // the build must not be installed: the store has a later embedding
};

// Approximate bytes of a collection's anchors and parameters.
int64_t MemoryOf(const PublicParameters& parameters);

// RESOURCE_EXHAUSTED if `purpose` takes more than `memory` bytes.
absl::Status CheckBuildMemory(absl::string_view purpose, int64_t bytes, int64_t memory);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_COLLECTION_H_
