// Parsing, validation and ranking of an untrusted server's answer to a RetrieveCells request.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_CELLS_CELL_ANSWER_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_CELLS_CELL_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/client_limits.h"
#include "privatemail/search_result.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// Maximum number of items in the answer: an equal share of request.items per cell, rounded up.
int64_t MaxItems(const v1::RetrieveCellsRequest& request);

// Item and byte limit on a streamed answer; protects the client's memory.
class CellAnswerLimit {
 public:
  // parameters: of a collection with cells.
  CellAnswerLimit(const PublicParameters& parameters, const v1::RetrieveCellsRequest& request);

  // DATA_LOSS: with this message the answer exceeds the requested items, their largest size in
  // bytes (payloads: 1 GiB in all), or one message without items.
  absl::Status Add(const v1::RetrieveCellsResponse& message);

 private:
  int64_t items_left_;
  int64_t bytes_left_;
  int64_t empty_messages_left_ = 1;
};

// Decodes a message's item codes: items x feature_dim.
// DATA_LOSS: the numbers of ids, labels, payloads and codes differ; a label is not one of the
// collection's; an id or payload is malformed.
absl::StatusOr<FloatMatrix> DecodeItems(const PublicParameters& parameters, bool with_payloads,
                                        const v1::RetrieveCellsResponse& message);

// The point that received items are ranked by. Private.
struct CellTarget {
  RowVector point;     // features scaled to length 1
  int64_t k = 8;       // matches
  size_t targets = 1;  // of the whole search
  int64_t max_memory = ClientLimits().max_memory;

  // INVALID_ARGUMENT: features of another dimension than the collection's, zero or not finite.
  static absl::StatusOr<CellTarget> From(const PublicParameters& parameters,
                                         const Eigen::RowVectorXf& features, int64_t k);
};

// Reads the k received items nearest to the target into `result`; squared distances are between
// unit features, the item's as its code holds them.
// DATA_LOSS naming message and field: malformed, a repeated item, or more than was requested.
// Privacy: all messages are validated before the target is used, so success does not depend on it
// and errors tell nothing about it.
absl::Status ReadCellAnswer(const PublicParameters& parameters,
                            const v1::RetrieveCellsRequest& request, const CellTarget& target,
                            const std::vector<v1::RetrieveCellsResponse>& response,
                            SearchResult* result);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_CELLS_CELL_ANSWER_H_
