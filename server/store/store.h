// The seam between the daemon and whatever keeps its collections.
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
#include "common/wire/payload_filter.h"
#include "common/embedding/public_parameters.h"
#include "server/store/types.h"

namespace privatemail::server {

// Watches for changes until it is destroyed, which waits for a call under way.
class ChangeWatch {
 public:
  virtual ~ChangeWatch() = default;
};

// Collections, their items and their embeddings. Every method that writes is one transaction: when
// it returns OK, what it wrote survives kill -9 and a loss of power of whatever holds it; with
// another status nothing was written, except that UNAVAILABLE and DEADLINE_EXCEEDED may leave it
// open, and every write but Create and Delete may simply be repeated. Thread-safe. Answering a
// search must not read the store: it may be slow or away.
//
// A collection is named by its UUID (parameters.collection_uuid), so that a name that was deleted
// and made again is not mistaken for the old one. Each insertion, update and deletion of an item
// takes the next number of its collection, the version, which is never used again; a reader who has
// seen version v has seen all changes up to v.
//
// Beside what each method lists, every one may return DATA_LOSS (what is stored is damaged),
// RESOURCE_EXHAUSTED (no space), UNAVAILABLE (no connection) and INTERNAL, all naming the place.
class Store {
 public:
  virtual ~Store() = default;

  // All collections, by name. Checks the anchors against their digest.
  virtual absl::StatusOr<std::vector<StoredCollection>> LoadCollections() = 0;
  // NOT_FOUND.
  virtual absl::StatusOr<StoredCollection> LoadCollection(absl::string_view uuid) = 0;
  // All collections, by name, at one moment.
  virtual absl::StatusOr<std::vector<CollectionState>> ListStates() = 0;

  // ALREADY_EXISTS: the name is taken.
  virtual absl::Status Create(const StoredCollection& collection) = 0;

  // Hands over the items of a collection in parts, as ReadGallery does; a status of `visit` that is
  // not OK ends it and is returned.
  using GalleryPartVisitor = absl::FunctionRef<absl::Status(Gallery part)>;
  using GallerySource = absl::FunctionRef<absl::Status(GalleryPartVisitor visit)>;
  // Creates a collection that has collection.items items from the first, all of it or nothing.
  // Their versions go on after collection.latest_version; versions in the parts are ignored.
  // ALREADY_EXISTS: the name or the UUID is taken. INVALID_ARGUMENT: there are more or fewer items,
  // their ids do not ascend, or one is malformed (CheckItem). Also what `source` returned.
  absl::Status Import(const StoredCollection& collection, GallerySource source);

  // Deletes a collection with all that belongs to it; returns how many items it had. NOT_FOUND.
  virtual absl::StatusOr<uint64_t> Delete(absl::string_view uuid) = 0;

  // Inserts or replaces by id, in order. An item equal to the stored one is left alone and keeps
  // its version; a malformed one is rejected alone (CheckItem). NOT_FOUND.
  virtual absl::StatusOr<UpsertResult> Upsert(const PublicParameters& parameters,
                                              absl::Span<const Item> items) = 0;

  // Ids that are not there are none of `deleted`. NOT_FOUND: no such collection.
  virtual absl::StatusOr<DeleteResult> DeleteItems(const PublicParameters& parameters,
                                                   absl::Span<const std::string> ids) = 0;

  // Those that are there, in the order of `ids`, each as often as it is asked for. NOT_FOUND: no
  // such collection.
  virtual absl::StatusOr<std::vector<Item>> GetItems(const PublicParameters& parameters,
                                                     absl::Span<const std::string> ids) = 0;

  // At most `limit` (>= 1) items whose payload fits, with ids after `after` ("": from the first).
  // An item that stays while pages are read is seen once. Reads at most kMaxScannedItems and about
  // kMaxPageBytes: with a filter that few items fit, pages are short. NOT_FOUND.
  absl::StatusOr<ItemPage> ScrollItems(const PublicParameters& parameters,
                                       const std::optional<PayloadFilter>& filter,
                                       absl::string_view after, int64_t limit);

  // Items whose payload fits; all without a filter. With one it reads them in parts, and what
  // changes meanwhile may or may not be counted. `cancelled`, which may be empty, is asked between
  // the parts. NOT_FOUND; CANCELLED.
  absl::StatusOr<uint64_t> CountItems(const PublicParameters& parameters,
                                      const std::optional<PayloadFilter>& filter,
                                      const std::function<bool()>& cancelled);

  // Told now and then how many bytes have been read; a status that is not OK ends the reading.
  using LoadWatch = std::function<absl::Status(int64_t bytes)>;
  // All items, at one moment. NOT_FOUND, and what `watch` returned.
  absl::StatusOr<Gallery> LoadGallery(const PublicParameters& parameters,
                                      const LoadWatch& watch = nullptr);

  // The same in parts of some megabytes, in the order of ids, each a gallery of its own with the
  // whole one's version; `items` is how many there are in all. A collection without items has one
  // part without rows. A status of `visit` that is not OK ends it and is returned. NOT_FOUND.
  using GalleryVisitor = absl::FunctionRef<absl::Status(int64_t items, Gallery part)>;
  virtual absl::Status ReadGallery(const PublicParameters& parameters, GalleryVisitor visit) = 0;

  // Replaces the collection's embedding; returns the new one's version. NOT_FOUND: the collection
  // was deleted, be it imported again since. ABORTED: the one there was made from later items.
  virtual absl::StatusOr<uint64_t> SaveEmbedding(const PublicParameters& parameters,
                                                 const Embedding& embedding) = 0;

  // Nothing before the first build. NOT_FOUND.
  virtual absl::StatusOr<std::optional<Embedding>> LoadEmbedding(
      const PublicParameters& parameters) = 0;

  // Ids of the embedding of this version whose items were deleted since it was made, and after the
  // collection's version `after`; nothing when that embedding is not the collection's any more.
  // NOT_FOUND.
  virtual absl::StatusOr<std::optional<std::vector<std::string>>> DeletedSince(
      const PublicParameters& parameters, uint64_t embedding_version, uint64_t after) = 0;

  // Exact. Before the first embedding every item counts as inserted. NOT_FOUND.
  virtual absl::StatusOr<ChangesSinceEmbedding> CountChanges(
      const PublicParameters& parameters) = 0;

  // Calls `changed` from a thread of its own: once at first, after every change that any daemon
  // makes, and after any time in which one could have been missed; again a second later while it
  // returns an error. `report`, which may be empty, is told from that thread why nothing can be
  // learnt, once for each reason, and OK when it works again. Null where no other daemon can change
  // anything. The store must outlive the watch.
  virtual std::unique_ptr<ChangeWatch> Watch(std::function<absl::Status()> changed,
                                             std::function<void(const absl::Status&)> report) = 0;

 protected:
  // The same for a source that hands over what Import asks for, or returns a status of its own.
  virtual absl::Status ImportParts(const StoredCollection& collection, GallerySource source) = 0;

  // Hands the items after `after`, at most `limit` of them, to `visit` until it returns false.
  // Features are left out unless asked for. NOT_FOUND.
  virtual absl::Status ScanItems(const PublicParameters& parameters, absl::string_view after,
                                 int64_t limit, bool with_features,
                                 absl::FunctionRef<bool(Item)> visit) = 0;
};

inline constexpr int64_t kMaxScannedItems = 10000;
inline constexpr int64_t kMaxPageBytes = 16 << 20;

// Rows of a part of a gallery whose features take some megabytes.
int64_t GalleryPartRows(int64_t feature_dim);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_STORE_H_
