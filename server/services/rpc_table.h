// The table of all RPCs with the rights that each requires.
#ifndef PRIVATEMAIL_SERVER_SERVICES_RPC_TABLE_H_
#define PRIVATEMAIL_SERVER_SERVICES_RPC_TABLE_H_

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/access/access_key.h"

namespace privatemail::server {

struct Rpc {
  const char* name;              // method name, unique over all services
  Scopes any_of;                 // the key needs one of these; 0: open, no key is needed
  const char* collection;        // request field that names the collection; "": none
  bool uses_store = false;       // the handler waits for the store
  bool all_collections = false;  // the key must cover all collections
};

// Every RPC that is served; a test compares it with the services' descriptors.
const std::vector<Rpc>& Rpcs();

// Aborts if the table has no entry, so that an RPC without access rules is never served.
const Rpc& FindRpc(absl::string_view name);

// The collection that the request names; empty if the RPC concerns none.
std::string GetCollectionName(const google::protobuf::Message& request, const Rpc& rpc);

// Whether the call waits for the store. request: null if it is not known yet.
bool UsesStore(const Rpc& rpc, const google::protobuf::Message* request);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_RPC_TABLE_H_
