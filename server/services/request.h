// What several RPCs have in common.
#ifndef PRIVATEMAIL_SERVER_SERVICES_REQUEST_H_
#define PRIVATEMAIL_SERVER_SERVICES_REQUEST_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "privatemail/v1/retrieval.pb.h"
#include "server/access/limits.h"
#include "server/engine/catalog.h"
#include "server/services/rpc_table.h"

namespace privatemail::server {

// The collection that a request of this RPC names; empty: it concerns none.
std::string CollectionNamedIn(const google::protobuf::Message& request, const Rpc& rpc);

// The collection as it is, if a searcher holds its public parameters. NOT_FOUND;
// FAILED_PRECONDITION: fingerprint mismatch.
absl::StatusOr<CollectionView> FindMatching(const Catalog& catalog, const std::string& name,
                                            const std::string& fingerprint);

// INVALID_ARGUMENT when a required text is empty: "collection must be named, but is empty".
absl::Status CheckGiven(absl::string_view field, absl::string_view value);

// RESOURCE_EXHAUSTED naming the limit, for an answer that no message may carry.
absl::Status AnswerTooLarge(int64_t max_bytes, absl::string_view remedy);

// Whether a call has memory for anchors of which only the size is known; `whose` is how the message
// begins: "memory of the anchors". RESOURCE_EXHAUSTED naming limit and value. Neither number is
// above the largest that max_anchors and max_dims may be.
absl::Status CheckAnchorMemory(absl::string_view whose, int64_t anchors, int64_t dims,
                               const Limits& limits);

using privatemail::ToProto;  // overloads of the enclosing namespace
void ToProto(const CollectionView& view, v1::GetCollectionResponse* proto);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_REQUEST_H_
