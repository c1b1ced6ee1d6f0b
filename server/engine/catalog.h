// The collections of a daemon: in memory for searches, in the store for good.
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
#include "absl/types/span.h"
#include "common/embedding/smlq.h"
#include "common/embedding/public_parameters.h"
#include "server/cells/cell_index.h"
#include "server/engine/embed.h"
#include "server/engine/later_work.h"
#include "server/engine/retriever.h"
#include "server/store/store.h"
#include "server/store/types.h"

namespace privatemail::server {

// What of a collection never changes.
struct PublishedCollection {
  std::string name;
  PublicParameters parameters;
  std::string fingerprint;  // 32 bytes
  Anchors anchors;
};

// A collection at one moment. What it points to stays valid and unchanged, whatever happens to the
// collection meanwhile.
struct CollectionView {
  std::shared_ptr<const PublishedCollection> published;
  std::shared_ptr<const Retriever> retriever;  // null before the first build
  std::shared_ptr<const HiddenRows> hidden;    // of the retriever; null: none
  std::shared_ptr<const CellIndex> cells;      // null where it is not made yet, or there are none
  std::shared_ptr<const HiddenRows> hidden_in_cells;  // of `cells`; null: none
  uint64_t items = 0;                                 // stored, embedded or not
  uint64_t latest_version = 0;                        // of the store's last change that this is of
  absl::Status cells_problem;                         // why `cells` could not be made the last time

  // Items that a search can find.
  uint64_t embedded_items() const;

  // Insertions, updates and deletions since the gallery that the retriever was made of.
  uint64_t changes_since_embedding() const;

  // Bytes that building it takes, about, with the features in memory or in a file.
  enum class Features { kInMemory, kInFile };
  int64_t build_memory(Features features) const;

  // The retriever, or FAILED_PRECONDITION naming the command that builds it.
  absl::StatusOr<std::shared_ptr<const Retriever>> Built() const;

  // FAILED_PRECONDITION: the collection has no cells.
  absl::Status CheckHasCells() const;
  // What answers for cells. FAILED_PRECONDITION: the collection has none, or is not built.
  // UNAVAILABLE: it is being made, or why it could not be.
  absl::StatusOr<std::shared_ptr<const CellIndex>> Cells() const;
  // The same to be read: "ready: 8000 items", "being made", or why it could not be. Empty: the
  // collection has none, or is not built.
  std::string DescribeCells() const;
};

// What an operator says about a new collection; MakePublicParameters checks it.
struct NewCollection {
  std::string name;
  EmbeddingSettings settings;
  Anchors anchors;
  std::vector<std::string> class_names;
  std::string extractor;
  std::vector<int64_t> cells = {};  // a partition of the anchors into so many, each
  std::optional<CellCode> cell_code = std::nullopt;
};

// Live: of what is made or loaded from now on; what answers stays as it is.
struct CatalogOptions {
  IndexOptions index = {};
  // Bytes that making what answers for a collection's cells may take, about.
  int64_t cells_memory = std::numeric_limits<int64_t>::max();
};

// Thread-safe. Looking a collection up waits for a map lookup at most: neither a build nor a write
// to the store holds it up. A finished build replaces the collection's retriever in one step, and
// searches under way keep the one they have. Writes to items leave the retriever as it is until the
// next build, but for deletions: a deleted item is not found any more when the call returns. Errors
// of the store pass through unchanged.
//
// Where other daemons use the same store, what they change is taken over as soon as the store tells
// of it; until then this catalog answers with what it has.
class Catalog {
 public:
  // Told why changes of other daemons cannot be learnt, and OK once they can again. Called from
  // another thread.
  using RefreshReport = std::function<void(const absl::Status&)>;

  // Loads every collection with its last embedding, so that searches are answered at once: by exact
  // indexes as long as approximate ones are being made. These and what answers for cells are made
  // afterwards, one collection after the other, fewest items first. One whose embedding is damaged
  // is not built. directory: where builds and snapshots keep what memory is not meant for.
  static absl::StatusOr<std::unique_ptr<Catalog>> Open(std::unique_ptr<Store> store,
                                                       std::string directory,
                                                       RefreshReport report = nullptr,
                                                       const CatalogOptions& options = {});

  // What Open could not read and did without, for the operator.
  const std::vector<std::string>& problems() const { return problems_; }

  void SetOptions(const CatalogOptions& options);

  const std::string& directory() const { return directory_; }

  // NOT_FOUND: "collection birds does not exist".
  absl::StatusOr<CollectionView> Find(absl::string_view name) const;
  std::vector<CollectionView> List() const;  // by name

  // INVALID_ARGUMENT naming the field; ALREADY_EXISTS. With cells it takes a k-means of the anchors
  // for each partition, and with a pq code one for its codebook.
  absl::StatusOr<CollectionView> Create(NewCollection collection);

  // A new collection with all items of a snapshot, or nothing. It keeps the snapshot's UUID unless
  // the store has a collection with it; then it gets a new one, and so another fingerprint. It is
  // not built. Its name is collection.name; its counts and `items` are as Store::Import has them,
  // but `items` may be asked for twice.
  // INVALID_ARGUMENT: the name; ALREADY_EXISTS; DATA_LOSS: parameters, anchors and items do not
  // belong together.
  absl::StatusOr<CollectionView> Restore(StoredCollection collection, Store::GallerySource items);

  // Whether Create or Restore would find the name malformed or taken, as far as this catalog knows.
  absl::Status CheckNewName(absl::string_view name) const;

  // All items, at one moment, in parts. NOT_FOUND: the collection was deleted; and what `visit`
  // returned.
  absl::Status ReadGallery(const CollectionView& collection, Store::GalleryVisitor visit) const;

  // Returns how many items went with it. A build under way ends with ABORTED. NOT_FOUND.
  absl::StatusOr<uint64_t> Delete(absl::string_view name);

  // One durable batch into the very collection of the view, never into a later one of its name.
  // NOT_FOUND: it was deleted.
  absl::StatusOr<UpsertResult> Upsert(const CollectionView& collection,
                                      absl::Span<const Item> items);

  // The same for a batch of ids to delete.
  absl::StatusOr<DeleteResult> DeleteItems(const CollectionView& collection,
                                           absl::Span<const std::string> ids);

  // What the store holds, as Store says. NOT_FOUND: the collection was deleted.
  absl::StatusOr<std::vector<Item>> GetItems(const CollectionView& collection,
                                             absl::Span<const std::string> ids) const;
  absl::StatusOr<ItemPage> ScrollItems(const CollectionView& collection,
                                       const std::optional<PayloadFilter>& filter,
                                       absl::string_view after, int64_t limit) const;
  absl::StatusOr<uint64_t> CountItems(const CollectionView& collection,
                                      const std::optional<PayloadFilter>& filter,
                                      const std::function<bool()>& cancelled) const;
  absl::StatusOr<ChangesSinceEmbedding> CountChanges(const CollectionView& collection) const;

  // Embeds what is stored and lets it answer. The observer is called with 0 before the work and
  // after each step; a status of its own ends the build and leaves the former embedding in place.
  // NOT_FOUND. FAILED_PRECONDITION: no items, or those of Embed. ABORTED: the collection is being
  // built already, was deleted meanwhile, or another daemon has built it from later items.
  // memory: bytes that it may take; where build_memory says more, features are read into a file
  // without a name. The result is the same. RESOURCE_EXHAUSTED: the disk has no room for it.
  absl::StatusOr<CollectionView> Build(absl::string_view name, const StepObserver& observer,
                                       int64_t memory = std::numeric_limits<int64_t>::max());

 private:
  struct Deletion {
    uint64_t latest_version = 0;  // of the collection, after it
    std::vector<std::string> ids;
  };
  struct Entry {
    CollectionView view;
    int64_t key = 0;               // in the store; 0: of a collection made here, not told yet
    uint64_t adopted_version = 0;  // up to which deletions of other daemons are hidden
    // While embeddings are being made or loaded: what was deleted here meanwhile, which they may
    // still have.
    int loads = 0;
    std::vector<Deletion> deletions;
    bool building = false;
    bool outdated = false;  // another daemon has saved an embedding during the build
    bool deleted = false;   // for those who still hold the entry
  };

  // What of the cells that answer an embedding shows to be deleted.
  struct Gone {
    std::shared_ptr<const CellIndex> cells;  // null: none answer
    std::vector<std::string> ids;            // of it
  };

  Catalog(std::unique_ptr<Store> store, std::string directory)
      : store_(std::move(store)), directory_(std::move(directory)) {}

  // Whether a restored collection may have this UUID.
  absl::StatusOr<bool> IsFree(const std::string& uuid);
  // Gives the collection another UUID if it must have one.
  absl::Status Import(StoredCollection* collection, Store::GallerySource items);

  absl::StatusOr<std::shared_ptr<Entry>> FindEntry(absl::string_view name) const;
  // The entry of this very collection; null when there is none any more. Under mutex_.
  std::shared_ptr<Entry> FindEntry(const PublishedCollection& published) const;
  bool IsDeleted(const Entry& entry) const;
  CatalogOptions options() const;

  // The following are called under mutex_.
  static void SetItems(uint64_t items, uint64_t latest_version, Entry* entry);
  static void Hide(absl::Span<const std::string> ids, Entry* entry);
  // Lets a retriever answer unless a later one does already; `deleted` are those ids that the store
  // knows to be deleted since, and a version of the collection that none of them is later than.
  static void Install(std::shared_ptr<const Retriever> retriever, const Deletion& deleted,
                      const Gone& gone, Entry* entry);
  static void EndLoad(Entry* entry);
  // What the entry's retriever can do without at first: an approximate index, and what answers for
  // cells.
  void MakeLater(const std::shared_ptr<Entry>& entry);

  // Marks the entry as being built and hands it out, or says why not.
  absl::StatusOr<std::shared_ptr<Entry>> BeginBuild(absl::string_view name);
  absl::Status RunBuild(const std::shared_ptr<Entry>& entry, const StepObserver& observer,
                        int64_t memory);
  // Embeds what the store has of a collection.
  absl::StatusOr<Embedding> EmbedStored(const CollectionView& view, const StepObserver& observer,
                                        int64_t memory);

  // What answers for the cells of an entry, from what is stored now; throws nothing.
  void MakeCells(Entry* entry, const std::atomic<bool>& stopped);
  bool BeginCells(Entry* entry);  // whether there is something to be made
  absl::Status LoadCells(Entry* entry, const std::atomic<bool>& stopped);
  // False: another retriever came meanwhile; to be called again.
  bool InstallCells(const std::shared_ptr<const CellIndex>& made, Entry* entry);
  // Before a retriever is installed, without mutex_.
  Gone FindGone(const Retriever& retriever, const Entry& entry) const;
  // A version that is no earlier than anything the store has told of the collection so far; 0 where
  // it has no cells.
  absl::StatusOr<uint64_t> VersionNow(const PublishedCollection& published) const;

  // Takes over what other daemons have changed: collections, embeddings, deletions, counts.
  absl::Status Refresh();
  absl::Status AdoptCollections(const std::vector<CollectionState>& states);
  absl::Status AdoptState(const CollectionState& state);
  absl::Status AdoptEmbedding(const std::shared_ptr<Entry>& entry);
  absl::Status AdoptDeletions(const CollectionState& state, Entry* entry);

  const std::unique_ptr<Store> store_;
  const std::string directory_;
  std::vector<std::string> problems_;  // unchanged after Open
  std::mutex refresh_mutex_;           // one Refresh at a time; before administration_mutex_
  std::mutex administration_mutex_;    // one Create, Delete or adoption at a time; before mutex_
  mutable std::mutex mutex_;           // guards what follows; never held over store calls
  std::map<std::string, std::shared_ptr<Entry>, std::less<>> entries_;
  CatalogOptions options_;
  LaterWork later_work_;
  std::unique_ptr<ChangeWatch> watch_;  // the last member: it ends before what it changes
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_CATALOG_H_
