// What comes back for cells, from a server that need not be believed.
#ifndef PRIVATEMAIL_CLIENT_CELL_ANSWER_H_
#define PRIVATEMAIL_CLIENT_CELL_ANSWER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/retrieval_client.h"
#include "common/base/matrix.h"
#include "common/protocol/public_parameters.h"
#include "privatemail/v1/retrieval.pb.h"

namespace privatemail {

// Items that may answer: as many for every cell, rounded up.
int64_t MostItems(const v1::RetrieveCellsRequest& request);

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

// The feature vectors of one message, one an item. DATA_LOSS: labels, payloads or codes are not
// those of as many items, a class is not the collection's, or a text is none.
absl::StatusOr<FloatMatrix> DecodeItems(const PublicParameters& parameters, bool with_payloads,
                                        const v1::RetrieveCellsResponse& message);

// Private: the target, and how many of its nearest are wanted.
struct CellTarget {
  RowVector unit_features;
  int64_t k = 8;
};

struct CellQueryResult {
  // Nearest to the target first, by squared distances to what the codes decode to, in the space of
  // unit features.
  std::vector<QueryMatch> matches;
  int64_t candidates = 0;      // items that came back
  uint64_t items_version = 0;  // of the collection, when what answered was made
};

// The k nearest of what came back for a request. DATA_LOSS naming message and field: malformed, an
// item twice, or more than was asked for. All messages are looked at before the target is, so that
// whether it fails does not depend on it: a server that spoils an answer learns nothing from a
// client that complains.
absl::StatusOr<CellQueryResult> ReadCellAnswer(
    const PublicParameters& parameters, const v1::RetrieveCellsRequest& request,
    const CellTarget& target, const std::vector<v1::RetrieveCellsResponse>& response);

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_CELL_ANSWER_H_
