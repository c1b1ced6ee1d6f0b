// The one way into every RPC.
#ifndef PRIVATEMAIL_SERVER_SERVICES_GATE_H_
#define PRIVATEMAIL_SERVER_SERVICES_GATE_H_

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/workers.h"
#include "server/access/admission.h"
#include "server/access/audit_log.h"
#include "server/access/key_ring.h"
#include "server/access/limits.h"
#include "server/access/line_budget.h"
#include "server/access/rate_limits.h"
#include "server/services/call.h"
#include "server/services/idle_calls.h"
#include "server/services/metrics.h"
#include "server/services/reactors.h"

namespace privatemail {

// What a gate stands on; all of it must outlive the gate.
struct GateParts {
  const KeyRing* keys = nullptr;  // null: keys are off and everyone may do everything
  AuditLog* audit = nullptr;      // null: none is kept
  Admission* admission = nullptr;
  Metrics* metrics = nullptr;
};

// Every RPC is served through here, and what all have in common is here: authentication,
// authorisation by rpc_table.h, rates, the queue, metrics, audit log and log. Who may not call is
// told so at once, on gRPC's thread; handlers run on threads of the gate's, which may wait, unless
// they are brief. Thread-safe.
class Gate {
 public:
  Gate(const GateParts& parts, const Limits& limits) : parts_(parts), limits_(limits) {}

  using Handler = std::function<absl::Status(Call&)>;

  // A brief handler neither waits nor computes for longer than a change of threads takes many times
  // over: it runs on gRPC's thread when there is a place for it at once.
  enum class Pace { kAny, kBrief };

  // Serves a call whose only message is `request` and whose answer the handler fills; both live as
  // long as the call. The handler is not run unless the caller may call: UNAUTHENTICATED without a
  // valid key, PERMISSION_DENIED when it is not for this RPC or collection, RESOURCE_EXHAUSTED when
  // it calls too often or the server is busy, CANCELLED when the caller is gone. Memory that runs
  // out in the handler is RESOURCE_EXHAUSTED, any other exception INTERNAL.
  grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext* context, absl::string_view rpc,
                                  const google::protobuf::Message& request, Handler handler) {
    return Serve(context, rpc, &request, Pace::kAny, std::move(handler));
  }
  // request: null when what came cannot be parsed, which the handler then says.
  grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext* context, absl::string_view rpc,
                                  const google::protobuf::Message* request, Pace pace,
                                  Handler handler);

  // The same with an answer of many messages.
  template <typename Message>
  grpc::ServerWriteReactor<Message>* ServeWriting(
      grpc::CallbackServerContext* context, absl::string_view rpc,
      const google::protobuf::Message& request,
      std::function<absl::Status(Call&, MessageWriter<Message>&)> handler) {
    auto* call = new WritingCall<Message>(NewCall(context, rpc));
    Begin(call, &request, Pace::kAny,
          [call, handler = std::move(handler)](Call&) { return handler(*call, *call); });
    return call;
  }

  // The same with many messages of the caller, each of which the handler shows to Call::Admit, and
  // an answer that goes out when it returns OK.
  template <typename Message, typename Answer>
  grpc::ServerReadReactor<grpc::ByteBuffer>* ServeReading(
      grpc::CallbackServerContext* context, absl::string_view rpc, grpc::ByteBuffer* response,
      std::function<absl::Status(Call&, MessageReader<Message>&, Answer*)> handler) {
    auto* call = new ReadingCall<Message>(NewCall(context, rpc));
    Begin(call, nullptr, Pace::kAny,
          [call, response, handler = std::move(handler)](Call&) -> absl::Status {
            Answer answer;
            PM_RETURN_IF_ERROR(handler(*call, *call, &answer));
            *response = ToWire(answer.SerializeAsString());
            return absl::OkStatus();
          });
    return call;
  }

  // For calls that begin from now on.
  void SetLimits(const Limits& limits);

 private:
  Call::Parts NewCall(grpc::CallbackServerContext* context, absl::string_view rpc);
  // Answers the call, now or from another thread.
  void Begin(Call* call, const google::protobuf::Message* request, Pace pace, Handler handler);
  // Sets the call's key, or says why the caller may not call.
  absl::Status Authorise(Call* call, const google::protobuf::Message* request);
  absl::StatusOr<std::shared_ptr<const AccessKey>> Identify(
      const grpc::CallbackServerContext& context) const;
  absl::Status CheckScopes(const Call& call) const;
  absl::Status Enter(Call* call);
  absl::Status Work(Call* call, const Handler& handler);
  void Conclude(Call* call, const absl::Status& status);
  static bool IsProbe(const Call& call);
  void Record(const Call& call, const absl::Status& status);
  // To the log and the audit log.
  void WriteDown(const Call& call, const AuditEntry& entry, const absl::Status& status);
  Limits CurrentLimits() const;

  const GateParts parts_;
  RateLimits rates_;
  LineBudget lines_;
  IdleCalls idle_;
  mutable std::mutex mutex_;  // guards limits_
  Limits limits_;
  Workers workers_;  // last: what they do uses the others
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_SERVICES_GATE_H_
