// What several RPCs have in common.
#ifndef PRIVATEMAIL_SERVER_SERVICES_REQUEST_H_
#define PRIVATEMAIL_SERVER_SERVICES_REQUEST_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "privatemail/v1/retrieval.pb.h"
#include "server/engine/catalog.h"
#include "server/services/rpc_table.h"

namespace privatemail {

// The collection that a request of this RPC names; empty: it concerns none.
std::string CollectionNamedIn(const google::protobuf::Message& request, const Rpc& rpc);

// INVALID_ARGUMENT when a required text is empty: "collection must be named, but is empty".
absl::Status CheckGiven(absl::string_view field, absl::string_view value);

void ToProto(const CollectionView& view, v1::GetCollectionResponse* proto);

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_SERVICES_REQUEST_H_
