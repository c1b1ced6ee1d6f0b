// The one way into every RPC.
#ifndef PRIVATEMAIL_SERVER_SERVICES_GATE_H_
#define PRIVATEMAIL_SERVER_SERVICES_GATE_H_

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/access/key_ring.h"
#include "server/access/rate_limits.h"
#include "server/services/rpc_table.h"

namespace privatemail {

// One call under way. Not thread-safe: its handler's alone.
class Call {
 public:
  Call(const Rpc& rpc, grpc::ServerContext* context) : rpc_(rpc), context_(context) {}

  // Of every message of the caller, before anything is done with it: may the key use this
  // collection? PERMISSION_DENIED, the same whether the collection exists or not. INVALID_ARGUMENT:
  // the collection is not named. Serve does it for calls with a single message.
  absl::Status Admit(const google::protobuf::Message& message);

  // Whether the key covers a collection that the caller has not named.
  bool Covers(absl::string_view collection) const { return key_->Covers(collection); }

  // The caller is gone or its deadline has passed: nobody waits for the result.
  bool Cancelled() const { return context_->IsCancelled(); }

  // For the log: how many items, anchors or matches went in or out. Never which.
  void AddRows(uint64_t count) { rows_ += count; }

 private:
  friend class Gate;

  const Rpc& rpc_;
  grpc::ServerContext* const context_;
  std::shared_ptr<const AccessKey> key_;
  std::string collection_;
  uint64_t rows_ = 0;
  uint64_t request_bytes_ = 0;
};

// Every RPC is served through here, and what all have in common is here: authentication,
// authorisation by rpc_table.h, rates and the log. Thread-safe.
class Gate {
 public:
  // `keys` is null on a daemon without keys, where everyone may do everything. It must outlive the
  // gate.
  explicit Gate(const KeyRing* keys) : keys_(keys) {}

  using Handler = std::function<absl::Status(Call&)>;

  // Serves a call whose only message is `request`. The handler is not run unless the caller may
  // call: UNAUTHENTICATED without a valid key, PERMISSION_DENIED when it is not for this RPC or
  // collection, RESOURCE_EXHAUSTED when it calls too often. Memory that runs out in the handler is
  // RESOURCE_EXHAUSTED, any other exception INTERNAL.
  grpc::Status Serve(grpc::ServerContext* context, absl::string_view rpc,
                     const google::protobuf::Message& request, const Handler& handler);

  // The same for a stream of messages, each of which the handler shows to Call::Admit.
  grpc::Status ServeStream(grpc::ServerContext* context, absl::string_view rpc,
                           const Handler& handler);

 private:
  // Sets the call's key, or says why the caller may not call at all.
  absl::Status Enter(Call* call);
  absl::StatusOr<std::shared_ptr<const AccessKey>> Identify(
      const grpc::ServerContext& context) const;

  const KeyRing* const keys_;
  RateLimits rates_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_SERVICES_GATE_H_
