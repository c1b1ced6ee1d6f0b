// The one way into every RPC.
#ifndef PRIVATEMAIL_SERVER_SERVICES_GATE_H_
#define PRIVATEMAIL_SERVER_SERVICES_GATE_H_

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/access/admission.h"
#include "server/access/audit_log.h"
#include "server/access/key_ring.h"
#include "server/access/limits.h"
#include "server/access/rate_limits.h"
#include "server/services/call.h"
#include "server/services/idle_streams.h"
#include "server/services/metrics.h"

namespace privatemail {

// What a gate stands on; all of it must outlive the gate.
struct GateParts {
  const KeyRing* keys = nullptr;  // null: keys are off and everyone may do everything
  AuditLog* audit = nullptr;      // null: none is kept
  Admission* admission = nullptr;
  Metrics* metrics = nullptr;
};

// Every RPC is served through here, and what all have in common is here: authentication,
// authorisation by rpc_table.h, rates, the queue, metrics, audit log and log. Thread-safe.
class Gate {
 public:
  Gate(const GateParts& parts, const Limits& limits) : parts_(parts), limits_(limits) {}

  using Handler = std::function<absl::Status(Call&)>;

  // Serves a call whose only message is `request`. The handler is not run unless the caller may
  // call: UNAUTHENTICATED without a valid key, PERMISSION_DENIED when it is not for this RPC or
  // collection, RESOURCE_EXHAUSTED when it calls too often or the server is busy, CANCELLED when
  // the caller is gone. Memory that runs out in the handler is RESOURCE_EXHAUSTED, any other
  // exception INTERNAL.
  grpc::Status Serve(grpc::ServerContext* context, absl::string_view rpc,
                     const google::protobuf::Message& request, const Handler& handler) {
    return Run(context, rpc, &request, handler);
  }

  // The same for a stream of messages, each of which the handler shows to Call::Admit. It reads and
  // writes by way of the call, so that nobody keeps a place who neither sends nor takes anything.
  grpc::Status ServeStream(grpc::ServerContext* context, absl::string_view rpc,
                           const Handler& handler) {
    return Run(context, rpc, nullptr, handler);
  }

  // For calls that begin from now on.
  void SetLimits(const Limits& limits);

 private:
  grpc::Status Run(grpc::ServerContext* context, absl::string_view rpc,
                   const google::protobuf::Message* request, const Handler& handler);
  absl::Status RunCall(Call* call, const google::protobuf::Message* request,
                       const Handler& handler);
  // Sets the call's key, or says why the caller may not call.
  absl::Status Authorise(Call* call, const google::protobuf::Message* request) const;
  absl::StatusOr<std::shared_ptr<const AccessKey>> Identify(
      const grpc::ServerContext& context) const;
  void Record(const Call& call, const absl::Status& status, absl::Duration elapsed);
  Limits CurrentLimits() const;

  const GateParts parts_;
  RateLimits rates_;
  IdleStreams idle_;
  mutable std::mutex mutex_;  // guards limits_
  Limits limits_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_SERVICES_GATE_H_
