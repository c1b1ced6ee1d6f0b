// What comes back for cells, from a server that need not be believed.
#ifndef PRIVATEMAIL_CELL_ANSWER_H_
#define PRIVATEMAIL_CELL_ANSWER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "privatemail/joint_client.h"
#include "common/base/matrix.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail::client {

// Items that may answer: as many for every cell, rounded up.
int64_t MaxItems(const v1::RetrieveCellsRequest& request);

// Counts an answer while it comes, so that no server fills a client's memory.
class CellAnswerLimit {
 public:
  // parameters: of the collection that is asked, with a code.
  CellAnswerLimit(const PublicParameters& parameters, const v1::RetrieveCellsRequest& request);

  // DATA_LOSS: with this message it has more items than were asked for, more bytes than these can
  // take (payloads: 1 GiB in all), or a second message without any item.
  absl::Status Add(const v1::RetrieveCellsResponse& message);

 private:
  int64_t items_left_;
  int64_t bytes_left_;
  int64_t empty_messages_left_ = 1;
};

// What the codes of one message decode to, one row an item: feature vectors, or coordinates.
// DATA_LOSS: labels, payloads or codes are not those of as many items, a class is not the
// collection's, a text is none, or coordinates are not said to be of an embedding.
absl::StatusOr<FloatMatrix> DecodeItems(const PublicParameters& parameters, bool with_payloads,
                                        const v1::RetrieveCellsResponse& message);

// Private: the target, and how many of its nearest are wanted. CellTargetFactory makes them.
struct CellTarget {
  // What items are compared with: unit features or, where the code is none, coordinates in the
  // server's embedding.
  RowVector place;
  int64_t k = 8;
  // Where the code is none: the class by which it was placed, and of which embedding the place is.
  std::optional<int32_t> label = std::nullopt;
  uint64_t embedding_version = 0;
};

struct CellQueryResult {
  // Nearest to the target first, by squared distances to what the codes decode to, in the space of
  // unit features or, where the code is none, in the server's embedding coordinates.
  std::vector<QueryMatch> matches;
  int64_t candidates = 0;      // items that came back
  uint64_t items_version = 0;  // of the collection, when what answered was made
};

// OK when coordinates of this embedding compare with the target. ABORTED: the collection was built
// after its anchors had been fetched, or another daemon is behind; they are to be fetched again.
absl::Status CheckEmbeddingVersion(uint64_t embedding_version, const CellTarget& target);

// The k nearest of what came back for a request. DATA_LOSS naming message and field: malformed, an
// item twice, more than was asked for, or coordinates of several embeddings. ABORTED as
// CheckEmbeddingVersion. All messages are looked at before the target is, so that
// whether it fails does not depend on it: a server that spoils an answer learns nothing from a
// client that complains.
absl::StatusOr<CellQueryResult> ReadCellAnswer(
    const PublicParameters& parameters, const v1::RetrieveCellsRequest& request,
    const CellTarget& target, const std::vector<v1::RetrieveCellsResponse>& response);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CELL_ANSWER_H_
