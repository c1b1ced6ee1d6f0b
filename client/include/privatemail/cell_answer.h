// Parsing, validation and ranking of an untrusted server's answer to a RetrieveCells request.
#ifndef PRIVATEMAIL_CELL_ANSWER_H_
#define PRIVATEMAIL_CELL_ANSWER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/joint_client.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// Maximum number of items in the answer: an equal share of request.items per cell, rounded up.
int64_t MaxItems(const v1::RetrieveCellsRequest& request);

// Item and byte limit on a streamed answer; protects the client's memory.
class CellAnswerLimit {
 public:
  // parameters: of a collection with a code.
  CellAnswerLimit(const PublicParameters& parameters, const v1::RetrieveCellsRequest& request);

  // DATA_LOSS: with this message the answer exceeds the requested items, their largest size in
  // bytes (payloads: 1 GiB in all), or one message without items.
  absl::Status Add(const v1::RetrieveCellsResponse& message);

 private:
  int64_t items_left_;
  int64_t bytes_left_;
  int64_t empty_messages_left_ = 1;
};

// Decodes a message's item codes: items x d, feature vectors or, with code none, coordinates.
// DATA_LOSS: the numbers of ids, labels, payloads and codes differ; a label is none of the
// collection's; an id or payload is malformed; coordinates without embedding_version.
absl::StatusOr<FloatMatrix> DecodeItems(const PublicParameters& parameters, bool with_payloads,
                                        const v1::RetrieveCellsResponse& message);

// The point that received items are ranked by. Private. Made by CellTargetFactory.
struct CellTarget {
  RowVector point;  // unit features or, with code none, server embedding coordinates
  int64_t k = 8;    // matches
  // With code none: the class by which the point was embedded, and the embedding's version.
  std::optional<int32_t> label = std::nullopt;
  uint64_t embedding_version = 0;
};

struct CellQueryResult {
  // Nearest first. Squared distances are to the decoded codes: between unit features or, with code
  // none, in the server's embedding coordinates.
  std::vector<QueryMatch> matches;
  int64_t candidates = 0;      // items received
  uint64_t items_version = 0;  // collection version of the last message
};

// ABORTED: target and coordinates are of different embeddings, since the collection was built after
// its anchors were fetched or the daemon lags behind. Remedy: fetch the anchors again.
absl::Status CheckEmbeddingVersion(uint64_t embedding_version, const CellTarget& target);

// The k received items nearest to the target.
// DATA_LOSS naming message and field: malformed, a repeated item, more than was requested, or
//   coordinates of several embeddings.
// ABORTED: see CheckEmbeddingVersion.
// Privacy: all messages are validated before the target is used, so success does not depend on it
// and errors tell nothing about it.
absl::StatusOr<CellQueryResult> ReadCellAnswer(
    const PublicParameters& parameters, const v1::RetrieveCellsRequest& request,
    const CellTarget& target, const std::vector<v1::RetrieveCellsResponse>& response);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CELL_ANSWER_H_
