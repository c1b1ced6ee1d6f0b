// What each RPC takes to be called.
#ifndef PRIVATEMAIL_SERVER_SERVICES_RPC_TABLE_H_
#define PRIVATEMAIL_SERVER_SERVICES_RPC_TABLE_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "server/access/access_key.h"

namespace privatemail::server {

struct Rpc {
  const char* name;        // of the method; no two services share one
  Scopes any_of;           // a key must have one of these; 0: open, no key is needed
  const char* collection;  // field of the request that names the collection; "": it concerns none
  bool all_collections = false;  // the key must be for all collections
};

// Every RPC that is served; a test compares it with the services' descriptors.
const std::vector<Rpc>& Rpcs();

// Aborts when there is no entry: an RPC that nobody thought about must not be served.
const Rpc& FindRpc(absl::string_view name);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_RPC_TABLE_H_
