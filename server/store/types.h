// What a collection store keeps, apart from how it keeps it. Server side; all of it is in the
// clear.
#ifndef PRIVATEMAIL_SERVER_STORE_TYPES_H_
#define PRIVATEMAIL_SERVER_STORE_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::server {

// One gallery item as the operator gave it.
struct Item {
  std::string id;  // 1 to kMaxItemIdBytes bytes of UTF-8
  int32_t label = 0;
  std::vector<float> features;  // feature_dim values, not all zero
  std::string payload;          // a JSON text of limited depth (item_text.h), or empty
  uint64_t version = 0;         // of its last change; given by the store, ignored on the way in
};

inline constexpr size_t kMaxItemIdBytes = 512;

// OK when `item` may enter a collection with these parameters; otherwise INVALID_ARGUMENT naming
// the field, what was expected and what came. Never repeats features or payload.
absl::Status CheckItem(const Item& item, const PublicParameters& parameters);

// What became of a batch of items.
struct UpsertResult {
  struct Rejection {
    size_t position = 0;  // within the batch
    std::string reason;
  };
  uint64_t inserted = 0;
  uint64_t updated = 0;
  uint64_t unchanged = 0;
  std::vector<Rejection> rejected;  // by position
  uint64_t items = 0;               // of the collection, after the batch
  uint64_t latest_version = 0;      // of the collection, after the batch
};

// What became of a batch of ids to delete.
struct DeleteResult {
  uint64_t deleted = 0;         // those that were there
  uint64_t items = 0;           // of the collection, after the batch
  uint64_t latest_version = 0;  // of the collection, after the batch
};

// A stored collection without its items.
struct StoredCollection {
  std::string name;
  PublicParameters parameters;
  Anchors anchors;
  uint64_t items = 0;
  uint64_t latest_version = 0;  // of its last change to an item; 0 before the first
  int64_t key = 0;              // see CollectionState; ignored on the way in
};

// What changes about a collection, without what is large.
struct CollectionState {
  std::string uuid;
  std::string name;
  // Given by the store when the collection is made, to no other ever: one that was deleted and
  // restored has its UUID again, but not its key. From 1.
  int64_t key = 0;
  uint64_t items = 0;
  uint64_t latest_version = 0;
  uint64_t embedding_version = 0;  // 0 before the first embedding
};

// How a collection differs from the gallery that its embedding was made from. An item that was
// deleted and came back under its id counts as deleted and as inserted.
struct ChangesSinceEmbedding {
  uint64_t inserted = 0;
  uint64_t updated = 0;
  uint64_t deleted = 0;

  friend bool operator==(const ChangesSinceEmbedding&, const ChangesSinceEmbedding&) = default;
};

// Part of a collection, in the order of the bytes of ids.
struct ItemPage {
  std::vector<Item> items;
  // Where the next page begins; nothing after the last. A page may be short or even empty and still
  // have a next one: it ends when enough was read.
  std::optional<std::string> next;
};

// All items of a collection, ordered by the bytes of their ids.
struct Gallery {
  uint64_t version = 0;               // the collection's latest version when it was read
  int64_t collection = 0;             // its key (CollectionState)
  std::vector<std::string> ids;       // n
  std::vector<int32_t> labels;        // n
  std::vector<std::string> payloads;  // n
  FloatMatrix features;               // n x feature_dim
};

// Memory that its rows take.
int64_t BytesOf(const Gallery& gallery);
// Appends all columns but the features, and takes over version and key.
void AppendRows(Gallery part, Gallery* all);
// OK when the columns have equal lengths and ids ascend; otherwise INVALID_ARGUMENT.
absl::Status CheckGallery(const Gallery& gallery, const PublicParameters& parameters);
// Row `row` as an item of its own.
Item ItemOf(const Gallery& gallery, size_t row);

// A finished embedding with everything that an answer is made of, so that writes to items after the
// build show only after the next one.
struct Embedding {
  uint64_t version = 0;               // given by the store when it is saved, from 1
  uint64_t items_version = 0;         // of the gallery that it was made from
  int64_t collection = 0;             // key of that gallery's collection; 0 saves it under any
  double objective = 0;               // Tr(Z' L_X Z) - alpha Tr(Z' L_Y Z)
  std::vector<std::string> ids;       // n, ascending by bytes
  std::vector<int32_t> labels;        // n
  std::vector<std::string> payloads;  // n
  Matrix coordinates;                 // n x embedding_dim
  Matrix anchor_coordinates;          // anchors x embedding_dim, in the published order
  std::vector<std::string> deleted;   // ids out of `ids` deleted since; filled when it is loaded
  std::string plan;                   // how it was computed (AffinityPlan::why); not stored
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_TYPES_H_
