// Data types of a collection store. Server side; all of it is in the clear.
#ifndef PRIVATEMAIL_SERVER_STORE_TYPES_H_
#define PRIVATEMAIL_SERVER_STORE_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"
#include "common/cells/cell_quality.h"
#include "common/embedding/public_parameters.h"
#include "common/items/item_checks.h"

namespace privatemail::server {

// A gallery item.
struct Item {
  std::string id;               // 1 to kMaxItemIdBytes bytes of UTF-8
  int32_t label = 0;            // or kNoLabel (item_checks.h)
  std::vector<float> features;  // feature_dim values; all zero only where CheckItem allows it
  std::string payload;          // a JSON text of limited depth (item_checks.h), or empty
  uint64_t version = 0;         // of its last change; set by the store, ignored in writes
};

inline constexpr size_t kMaxCollectionNameBytes = 64;

// NOT_FOUND: "collection fruit does not exist". collection: its name or UUID.
absl::Status NoSuchCollection(absl::string_view collection);

// INVALID_ARGUMENT naming field, expected and actual value: the item does not fit a collection with
// these parameters; none fits one without a dimension. A zero vector fits one without anchors whose
// metric is not cosine. Never repeats features or payload.
absl::Status CheckItem(const Item& item, const PublicParameters& parameters);

// The result of an upsert of a batch.
struct UpsertResult {
  struct Rejection {
    size_t position = 0;  // within the batch
    std::string reason;
  };
  uint64_t inserted = 0;
  uint64_t updated = 0;
  uint64_t stripped = 0;  // of `updated`, items that lost a payload or a label
  uint64_t unchanged = 0;
  std::vector<Rejection> rejected;  // by position; the store rejects none
  uint64_t items = 0;               // of the collection, after the batch
  uint64_t latest_version = 0;      // of the collection, after the batch
};

inline constexpr size_t kMaxMissingListed = 100;

// The result of a deletion of a batch of ids.
struct DeleteResult {
  uint64_t deleted = 0;                         // existing ones
  std::vector<std::string> first_missing = {};  // others of the ids, at most kMaxMissingListed
  uint64_t items = 0;                           // of the collection, after the batch
  uint64_t latest_version = 0;                  // of the collection, after the batch
};

// Part `number`, from 1, of `of` equal ranges of the partitions of every collection's items; of 1:
// all items.
struct Shard {
  int64_t number = 1;
  int64_t of = 1;
};

// A stored collection without its items.
struct StoredCollection {
  std::string name;
  PublicParameters parameters;
  Anchors anchors;
  uint64_t items = 0;
  uint64_t latest_version = 0;  // of its last change to an item; 0 before the first
  int64_t key = 0;              // see CollectionState; ignored in writes
};

// The mutable part of a collection, without large data.
struct CollectionState {
  std::string uuid;
  std::string name;
  // From 1, set by the store on creation and never reused: a restored collection has the UUID of
  // the deleted one, but another key.
  int64_t key = 0;
  uint64_t items = 0;
  uint64_t latest_version = 0;
  uint64_t embedding_version = 0;  // 0 before the first embedding
  uint64_t parameters_bytes = 0;   // as stored: every change of the parameters makes them more
};

// Differences of a collection from the gallery of its embedding. An item that was deleted and
// inserted again counts as both.
struct ChangesSinceEmbedding {
  uint64_t inserted = 0;
  uint64_t updated = 0;
  uint64_t deleted = 0;

  friend bool operator==(const ChangesSinceEmbedding&, const ChangesSinceEmbedding&) = default;
};

// A page of a collection, ordered by the bytes of ids.
struct ItemPage {
  std::vector<Item> items;
  // Cursor of the next page; empty after the last. A page with a next one may be short or empty,
  // because reading is bounded.
  std::optional<std::string> next;
};

// Items of a collection, ordered by the bytes of ids.
struct Gallery {
  uint64_t version = 0;               // latest version of the collection when it was read
  int64_t collection = 0;             // its key (CollectionState)
  std::vector<std::string> ids;       // n
  std::vector<int32_t> labels;        // n; kNoLabel for an item without a label
  std::vector<std::string> payloads;  // n
  FloatMatrix features;               // n x feature_dim
};

// Memory of the rows.
int64_t BytesOf(const Gallery& gallery);
// Appends all columns except features; takes over version and key.
void AppendRows(Gallery part, Gallery* all);

// An item of an embedding that was deleted since.
struct DeletedItem {
  std::string id;
  uint64_t version = 0;  // of the collection, after its deletion
};

// Changes of a collection's items after a version, as one reading of the store finds them.
struct ItemChanges {
  int64_t collection = 0;  // key of the collection (CollectionState)
  // The items of the collection or of the shard, which counts them only if tombstones may be
  // missing.
  std::optional<uint64_t> items;
  uint64_t latest_version = 0;       // of the collection
  std::vector<std::string> deleted;  // since, and not inserted again; in any order
};

// A finished embedding with labels and payloads, so that later writes show after the next build
// only.
struct Embedding {
  uint64_t version = 0;               // from 1; 0 on saving: the next
  uint64_t items_version = 0;         // version of its gallery
  int64_t collection = 0;             // key of its gallery's collection; 0: not checked on saving
  double objective = 0;               // Tr(Z' L_X Z) - alpha Tr(Z' L_Y Z)
  std::vector<std::string> ids;       // n, ascending by bytes
  std::vector<int32_t> labels;        // n
  std::vector<std::string> payloads;  // n
  Matrix coordinates;                 // n x embedding_dim
  Matrix anchor_coordinates;          // anchors x embedding_dim, in the published order
  std::vector<DeletedItem> deleted;   // since; set on loading
  uint64_t deleted_until = 0;         // version of the collection then
  std::string plan;                   // AffinityPlan::why; not stored
};

// One version of a collection's embedding; zeros before the first.
struct EmbeddingVersion {
  int64_t version = 0;
  int64_t items_version = 0;

  friend bool operator==(const EmbeddingVersion&, const EmbeddingVersion&) = default;
};

// The stored cells of an embedding.
struct StoredCells {
  std::string image;                   // server/cells/cell_image.h, which the store never reads
  std::optional<CellQuality> quality;  // once it is measured
};

// A random (version 4) UUID for a new collection. INTERNAL: the system's generator failed.
absl::StatusOr<std::string> NewUuid();

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_TYPES_H_
