// The interface of a collection store.
#ifndef PRIVATEMAIL_SERVER_STORE_STORE_H_
#define PRIVATEMAIL_SERVER_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/embedding/public_parameters.h"
#include "common/items/payload_filter.h"
#include "server/store/types.h"

namespace privatemail::server {

// A subscription to changes. Destruction ends it and waits for a running callback.
class ChangeWatch {
 public:
  virtual ~ChangeWatch() = default;
};

// Durable storage of collections, their items and embeddings. Thread-safe. Searches do not read the
// store, which may be slow or unavailable.
//   - Every write is one transaction. OK: it survives kill -9 and a loss of power. Other statuses:
//     nothing was written, except that UNAVAILABLE and DEADLINE_EXCEEDED leave it open. All writes
//     except Create and Delete are idempotent.
//   - A collection is identified by its UUID (parameters.collection_uuid), so that a recreated
//     collection is not mistaken for the deleted one of its name.
//   - Each insertion, update and deletion of an item takes the next version of its collection,
//     which is never reused. A reader of version v has seen all changes up to v.
//   - Every method may also return DATA_LOSS (damage), RESOURCE_EXHAUSTED (no space), UNAVAILABLE
//     (no connection) and INTERNAL, all naming the file or database.
class Store {
 public:
  virtual ~Store() = default;

  // Whether every write is refused with RESOURCE_EXHAUSTED, because the disk was full when the
  // store was opened. Never blocks.
  virtual bool read_only() const { return false; }
  // Ends that state if there is space now; otherwise the reason. OK: writes are taken.
  virtual absl::Status TryWritable() { return absl::OkStatus(); }

  // Whether this has a part of the items only (Shard). Then it writes none, its embeddings and
  // cells are its own, and counts of items outside of ReadGallery and ReadChanges are estimates.
  virtual bool is_shard() const { return false; }

  // By name. Checks the anchors against their digest.
  virtual absl::StatusOr<std::vector<StoredCollection>> LoadCollections() = 0;
  // NOT_FOUND.
  virtual absl::StatusOr<StoredCollection> LoadCollection(absl::string_view uuid) = 0;
  // By name, of one moment.
  virtual absl::StatusOr<std::vector<CollectionState>> ListStates() = 0;

  // ALREADY_EXISTS: the name is taken.
  virtual absl::Status Create(const StoredCollection& collection) = 0;

  // Passes items to `visit` in parts, as ReadGallery does. An error of `visit` ends it and is
  // returned.
  using GalleryPartVisitor = absl::FunctionRef<absl::Status(Gallery part)>;
  using GallerySource = absl::FunctionRef<absl::Status(GalleryPartVisitor visit)>;
  // Creates a collection with collection.items items, completely or not at all. Versions continue
  // after collection.latest_version; those in the parts are ignored. ALREADY_EXISTS: the name or
  // the UUID. INVALID_ARGUMENT: another number of items, or ids that do not ascend; the caller
  // has checked the items (CheckItem). Errors of `source`.
  absl::Status Import(const StoredCollection& collection, GallerySource source);

  // Deletes a collection with its items and embedding; returns the number of items. NOT_FOUND.
  virtual absl::StatusOr<uint64_t> Delete(absl::string_view uuid) = 0;

  // Removes some of the rows that deletions and failed imports have left, which nobody sees, in one
  // short transaction. False: none are left.
  virtual absl::StatusOr<bool> RemoveSomeRows() { return false; }

  // Fixes the dimension of a collection without anchors, once: returns the one that it has then.
  // dimension: 1 to lattice::kMaxDimensions. NOT_FOUND.
  virtual absl::StatusOr<int64_t> FixDimension(absl::string_view uuid, int64_t dimension) = 0;

  // Appends to the class names of a collection without classes, of which `names` begin with those
  // that it has. ABORTED: they do not. INVALID_ARGUMENT: Validate, or the first names of a
  // collection that has items. NOT_FOUND.
  virtual absl::Status AppendClassNames(absl::string_view uuid,
                                        const std::vector<std::string>& names) = 0;

  // Inserts or replaces by id, in order. An item equal to the stored one keeps its version. The
  // caller has checked the items (CheckItem); none is rejected. NOT_FOUND.
  virtual absl::StatusOr<UpsertResult> Upsert(const PublicParameters& parameters,
                                              absl::Span<const Item> items) = 0;

  // Unknown ids are ignored. NOT_FOUND: no such collection.
  virtual absl::StatusOr<DeleteResult> DeleteItems(const PublicParameters& parameters,
                                                   absl::Span<const std::string> ids) = 0;

  // Existing items, in the order of `ids` with repetitions. NOT_FOUND: no such collection.
  virtual absl::StatusOr<std::vector<Item>> GetItems(const PublicParameters& parameters,
                                                     absl::Span<const std::string> ids) = 0;

  // At most `limit` (>= 1) matching items with ids after `after` ("": from the first). An item that
  // exists during the whole scroll is seen once. Reads at most kMaxScannedItems items and about
  // kMaxPageBytes, so a rare filter gives short pages. NOT_FOUND.
  absl::StatusOr<ItemPage> ScrollItems(const PublicParameters& parameters,
                                       const std::optional<PayloadFilter>& filter,
                                       absl::string_view after, int64_t limit);

  // The number of matching items. With a filter it reads in parts, and concurrent changes may or
  // may not be counted. cancelled: polled between parts; may be empty. NOT_FOUND; CANCELLED.
  absl::StatusOr<uint64_t> CountItems(const PublicParameters& parameters,
                                      const std::optional<PayloadFilter>& filter,
                                      const std::function<bool()>& cancelled);

  // Called repeatedly with the bytes read so far; an error ends the reading and is returned.
  using LoadWatch = std::function<absl::Status(int64_t bytes)>;
  // All items, of one moment. NOT_FOUND.
  absl::StatusOr<Gallery> LoadGallery(const PublicParameters& parameters,
                                      const LoadWatch& watch = nullptr);

  // All items, of one moment, in parts of some megabytes, ordered by id. Each part has the version
  // of the whole; `items` is the total. An empty collection has one part without rows. An error of
  // `visit` ends the reading and is returned. NOT_FOUND.
  using GalleryVisitor = absl::FunctionRef<absl::Status(int64_t items, Gallery part)>;
  virtual absl::Status ReadGallery(const PublicParameters& parameters, GalleryVisitor visit) = 0;

  // The changes after version `after`, of one moment: items in ascending order of their versions,
  // in parts of some megabytes of features. An empty result has one part without items. `changes`
  // is the same for every part. An error of `visit` ends the reading and is returned. NOT_FOUND.
  //   - after 0: all items; none are deleted.
  //   - Tombstones are pruned, so that items may be deleted that `deleted` lacks: then a reader who
  //     applies the changes to all items of version `after` has more items than the collection.
  using ChangesVisitor =
      absl::FunctionRef<absl::Status(const ItemChanges& changes, std::vector<Item> part)>;
  virtual absl::Status ReadChanges(const PublicParameters& parameters, uint64_t after,
                                   ChangesVisitor visit) = 0;

  // Replaces the collection's embedding; returns the new version. NOT_FOUND: the collection was
  // deleted, even if it was imported again. ABORTED: the stored embedding is of later items.
  // A shard stores it beside the present embedding, which TakeOver replaces; ABORTED also: another
  // build has taken the place of this one.
  virtual absl::StatusOr<uint64_t> SaveEmbedding(const PublicParameters& parameters,
                                                 const Embedding& embedding) = 0;
  // A version for the embeddings that all shards build together, later than all former ones.
  virtual absl::StatusOr<uint64_t> NewEmbeddingVersion() {
    return absl::UnimplementedError("this store has no shards");
  }
  // On a shard: waits until all shards have saved an embedding of this version, and makes these
  // embeddings the present ones in one transaction. poll: called about ten times a second; its
  // error ends the wait and is returned; the next build deletes what was saved. ABORTED: another
  // build has taken the place of this one. NOT_FOUND: the collection was deleted.
  virtual absl::Status TakeOver(const PublicParameters& /*parameters*/, uint64_t /*version*/,
                                absl::FunctionRef<absl::Status()> /*poll*/) {
    return absl::OkStatus();
  }

  // Empty before the first build. NOT_FOUND.
  virtual absl::StatusOr<std::optional<Embedding>> LoadEmbedding(
      const PublicParameters& parameters) = 0;

  // Stores the cells of the collection's embedding instead of former ones, without quality. They
  // are deleted with their embedding. ABORTED: the collection has another embedding. NOT_FOUND.
  virtual absl::Status SaveCells(const PublicParameters& parameters, const EmbeddingVersion& of,
                                 absl::string_view image) = 0;
  // Adds their quality. No effect if they are not stored. NOT_FOUND, or as above.
  virtual absl::Status SaveQuality(const PublicParameters& parameters, const EmbeddingVersion& of,
                                   const CellQuality& quality) = 0;
  // Called with the bytes to be read; an error ends the reading and is returned.
  using SizeCheck = absl::FunctionRef<absl::Status(int64_t bytes)>;
  // Empty if none are stored for this embedding. NOT_FOUND. ABORTED: those of a shard are stored,
  // but not yet those of all others.
  virtual absl::StatusOr<std::optional<StoredCells>> LoadCells(const PublicParameters& parameters,
                                                               const EmbeddingVersion& of,
                                                               SizeCheck check) = 0;
  // A claim to make the cells of a collection, which ends with its owner; null while another daemon
  // has it. Only spares work: a claim may be lost unnoticed. It must not outlive the store.
  virtual absl::StatusOr<std::shared_ptr<const void>> ClaimCells(
      const PublicParameters& /*parameters*/) {
    return std::make_shared<const bool>();  // no other daemon can use the store
  }

  // Items of the embedding of this version that were deleted since, and after the collection's
  // version `after`, perhaps to be inserted again. Empty if the collection has another embedding.
  // NOT_FOUND.
  virtual absl::StatusOr<std::optional<std::vector<DeletedItem>>> DeletedSince(
      const PublicParameters& parameters, uint64_t embedding_version, uint64_t after) = 0;

  // Exact. Before the first embedding every item counts as inserted. NOT_FOUND.
  virtual absl::StatusOr<ChangesSinceEmbedding> CountChanges(
      const PublicParameters& parameters) = 0;

  // Calls `changed` from its own thread: at the start, after every change of any daemon, and after
  // every outage in which one may have been missed; while it returns an error, again every second.
  // report: called from that thread once for each reason of an outage, and with OK after it; may be
  // empty. Null if no other daemon can use the store, which must outlive the watch.
  virtual std::unique_ptr<ChangeWatch> Watch(std::function<absl::Status()> changed,
                                             std::function<void(const absl::Status&)> report) = 0;

 protected:
  // Import with a source that has been validated as Import describes.
  virtual absl::Status ImportParts(const StoredCollection& collection, GallerySource source) = 0;

  // Passes at most `limit` items after `after` to `visit` until it returns false. NOT_FOUND.
  virtual absl::Status ScanItems(const PublicParameters& parameters, absl::string_view after,
                                 int64_t limit, bool with_features,
                                 absl::FunctionRef<bool(Item)> visit) = 0;
};

inline constexpr int64_t kMaxScannedItems = 10000;
inline constexpr int64_t kMaxPageBytes = 16 << 20;

// Without anchors no embedding prunes tombstones: a deletion removes at most kPrunedTombstones more
// than it adds of those that are older than the last kKeptTombstones changes. Shards rely on these.
inline constexpr int64_t kKeptTombstones = 100'000;
inline constexpr int64_t kPrunedTombstones = 1000;

// Parts in which a store keeps an image.
inline constexpr size_t kImagePartBytes = size_t{4} << 20;

// Rows of a gallery part of some megabytes of features. feature_dim: 0 in a collection without
// items.
int64_t GalleryPartRows(int64_t feature_dim);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_STORE_H_
