// What every RPC has in common.
#ifndef PRIVATEMAIL_SERVER_SERVICES_REQUEST_H_
#define PRIVATEMAIL_SERVER_SERVICES_REQUEST_H_

#include <grpcpp/support/status.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "privatemail/v1/retrieval.pb.h"
#include "server/engine/catalog.h"

namespace privatemail {

// Runs a handler, turns its status into gRPC's and writes one log line: rpc, collection, status
// code, milliseconds and, when it failed, the message. Memory that runs out is RESOURCE_EXHAUSTED,
// any other exception INTERNAL. `collection` is read after the handler, which for a stream learns
// it from the first message.
grpc::Status Serve(absl::string_view rpc, const std::string& collection,
                   const std::function<absl::Status()>& handler);

// INVALID_ARGUMENT when a required text is empty: "collection must be named, but is empty".
absl::Status CheckGiven(absl::string_view field, absl::string_view value);

void ToProto(const CollectionView& view, v1::GetCollectionResponse* proto);

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_SERVICES_REQUEST_H_
