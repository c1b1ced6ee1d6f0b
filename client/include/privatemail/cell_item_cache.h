// Items that came back for cells, to be searched again for nothing.
#ifndef PRIVATEMAIL_RECEIVED_ITEMS_H_
#define PRIVATEMAIL_RECEIVED_ITEMS_H_

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/cell_answer.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// What one collection has answered so far, each item once. To rank it is post-processing of
// releases that are paid for. Whether its owner asks the server after looking here is seen by the
// server, and is not covered by any guarantee: who decides by what was found tells something about
// the target. Not thread-safe.
class CellItemCache {
 public:
  static constexpr int64_t kDefaultMaxBytes = int64_t{64} << 20;

  // parameters: of a collection with a code. max_bytes: of ids, codes and payloads together.
  explicit CellItemCache(PublicParameters parameters, int64_t max_bytes = kDefaultMaxBytes);

  // Takes the items of an answer's message, in place of those of the same ids, whatever their
  // versions: a restored collection counts anew. Payloads of items that come again as they were,
  // but without, stay. Where there are too many bytes, those go that came first. Coordinates (code
  // none) are all of one embedding: those of a later one take the place of all, those of an earlier
  // one are not taken. DATA_LOSS: malformed, of which nothing is taken.
  absl::Status Add(const v1::RetrieveCellsResponse& message);

  int64_t items() const { return static_cast<int64_t>(items_.size()); }
  // Of which the coordinates are; 0: none came, or the code is not none.
  uint64_t embedding_version() const { return embedding_version_; }

  // The k nearest of them all; items_version: of the one that came last. ABORTED as
  // CheckEmbeddingVersion.
  absl::StatusOr<CellQueryResult> Nearest(const CellTarget& target) const;

  // All of them, those that came first first: what another object can Add.
  std::vector<v1::RetrieveCellsResponse> ToMessages() const;

 private:
  struct Item {
    std::string id;
    int32_t label = 0;
    std::string code;
    std::optional<std::string> payload;  // nothing: none was asked for
    uint64_t version = 0;                // of the collection

    int64_t bytes() const;
  };
  using Items = std::list<Item>;

  void Take(Item item);
  void Forget(Items::iterator item);
  void ForgetAll();

  PublicParameters parameters_;
  int64_t max_bytes_;
  uint64_t embedding_version_ = 0;
  Items items_;  // first come, first
  std::unordered_map<std::string, Items::iterator> by_id_;
  int64_t bytes_ = 0;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_RECEIVED_ITEMS_H_
