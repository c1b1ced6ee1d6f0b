// A byte-bounded cache of the items that one collection's answers contained.
#ifndef PRIVATEMAIL_CELL_ITEM_CACHE_H_
#define PRIVATEMAIL_CELL_ITEM_CACHE_H_

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/cell_answer.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// Items by id, evicted in order of arrival. Held by the client; sees targets only while FindNearest
// runs. Not thread-safe.
// - Cost: none. A rank of cached items is post-processing of paid releases.
// - Not covered by a guarantee: the server sees whether a query follows a local search, so a
//   decision by the local result reveals something about the target.
class CellItemCache {
 public:
  static constexpr int64_t kDefaultMaxBytes = int64_t{64} << 20;

  // parameters: of a collection with a code. max_bytes: of ids, codes and payloads together.
  explicit CellItemCache(PublicParameters parameters, int64_t max_bytes = kDefaultMaxBytes);

  // Inserts or replaces the items of an answer's message, then evicts the oldest beyond max_bytes.
  // - The latest message wins, whatever its version: a restored collection counts anew.
  // - An unchanged item that returns without payload keeps its payload.
  // - Coordinates (code none) are all of one embedding: a later one evicts all items, an earlier
  //   one is ignored.
  // DATA_LOSS: malformed; nothing is inserted.
  absl::Status Add(const v1::RetrieveCellsResponse& message);

  int64_t items() const { return static_cast<int64_t>(items_.size()); }
  // Of the cached coordinates; 0 without items or unless the code is none.
  uint64_t embedding_version() const { return embedding_version_; }

  // The target's k nearest cached items; items_version is that of the newest item. ABORTED: see
  // CheckEmbeddingVersion.
  absl::StatusOr<CellQueryResult> FindNearest(const CellTarget& target) const;

  // All items, oldest first, as messages for Add.
  std::vector<v1::RetrieveCellsResponse> ToMessages() const;

 private:
  struct Item {
    std::string id;
    int32_t label = 0;
    std::string code;
    std::optional<std::string> payload;  // nullopt: not requested
    uint64_t version = 0;                // of the collection

    int64_t bytes() const;
  };
  using Items = std::list<Item>;

  void Insert(Item item);
  void Evict(Items::iterator item);
  void Clear();

  PublicParameters parameters_;
  int64_t max_bytes_;
  uint64_t embedding_version_ = 0;
  Items items_;  // oldest first
  std::unordered_map<std::string, Items::iterator> by_id_;
  int64_t bytes_ = 0;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CELL_ITEM_CACHE_H_
