// The items of cells, as a stream.
#ifndef PRIVATEMAIL_SERVER_SERVICES_ANSWER_CELLS_H_
#define PRIVATEMAIL_SERVER_SERVICES_ANSWER_CELLS_H_

#include "absl/status/status.h"
#include "privatemail/v1/retrieval.pb.h"
#include "server/engine/catalog.h"
#include "server/services/call.h"
#include "server/services/reactors.h"

namespace privatemail::server {

// Writes the items that answer for the cells asked for, each once. Errors as RetrieveCells has them
// (retrieval.proto).
absl::Status AnswerForCells(const Catalog& catalog, const v1::RetrieveCellsRequest& request,
                            Call& call, MessageWriter<v1::RetrieveCellsResponse>& writer);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_ANSWER_CELLS_H_
