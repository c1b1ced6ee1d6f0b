// The table of all RPCs with the rights that each requires, and checks that several handlers share.
#ifndef PRIVATEMAIL_SERVER_SERVICES_RPC_TABLE_H_
#define PRIVATEMAIL_SERVER_SERVICES_RPC_TABLE_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "privatemail/v1/retrieval.pb.h"
#include "server/access/access_key.h"
#include "server/access/limits.h"
#include "server/engine/catalog.h"

namespace privatemail::server {

struct Rpc {
  const char* name;              // method name, unique over all services
  Scopes any_of;                 // the key needs one of these; 0: open, no key is needed
  const char* collection;        // request field that names the collection; "": none
  bool all_collections = false;  // the key must cover all collections
};

// Every RPC that is served; a test compares it with the services' descriptors.
const std::vector<Rpc>& Rpcs();

// Aborts if the table has no entry, so that an RPC without access rules is never served.
const Rpc& FindRpc(absl::string_view name);

// The collection that the request names; empty if the RPC concerns none.
std::string GetCollectionName(const google::protobuf::Message& request, const Rpc& rpc);

// The collection whose public parameters the searcher holds.
// NOT_FOUND: no such collection. FAILED_PRECONDITION: fingerprint mismatch.
absl::StatusOr<CollectionView> FindCollection(const Catalog& catalog, const std::string& name,
                                              const std::string& fingerprint);

// INVALID_ARGUMENT when a required text is empty: "collection must be named, but is empty".
absl::Status CheckNotEmpty(absl::string_view field, absl::string_view value);

// INVALID_ARGUMENT: message `number` (from 0) of a stream names another collection than the first.
// consequence: ends the error.
absl::Status CheckSameCollection(absl::string_view first, absl::string_view actual, int64_t number,
                                 absl::string_view consequence);

// RESOURCE_EXHAUSTED naming max_message_bytes and how to stay below it.
absl::Status ResponseTooLargeError(int64_t max_bytes, absl::string_view remedy);

// RESOURCE_EXHAUSTED if `anchors` x `dims` anchors exceed max_request_memory. `quantity` begins the
// message: "memory of the anchors". The caller has checked max_anchors and max_dims.
absl::Status CheckAnchorMemory(absl::string_view quantity, int64_t anchors, int64_t dims,
                               const Limits& limits);

// All fields but `changes`, `max_k`, `quality` and `build_share`.
void CollectionToProto(const CollectionView& view, v1::GetCollectionResponse* proto);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_RPC_TABLE_H_
