// The one way into every RPC.
#ifndef PRIVATEMAIL_SERVER_SERVICES_GATE_H_
#define PRIVATEMAIL_SERVER_SERVICES_GATE_H_

#include <google/protobuf/arena.h>
#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/workers.h"
#include "server/access/admission.h"
#include "server/access/audit_log.h"
#include "server/access/byte_budget.h"
#include "server/access/key_ring.h"
#include "server/access/limits.h"
#include "server/access/line_budget.h"
#include "server/access/rate_limits.h"
#include "server/services/call.h"
#include "server/services/idle_calls.h"
#include "server/services/metrics.h"
#include "server/services/reactors.h"
#include "server/services/wire.h"

namespace privatemail::server {

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

  // A brief handler neither waits nor computes for longer than a change of threads takes many times
  // over: it runs on gRPC's thread when there is a place for it at once.
  enum class Pace { kAny, kBrief };

  // Serves a call of one message with the answer that the handler fills. The handler is not run
  // unless the caller may call: UNAUTHENTICATED without a valid key, PERMISSION_DENIED when it is
  // not for this RPC or collection, RESOURCE_EXHAUSTED when it calls too often or the server is
  // busy, INVALID_ARGUMENT when its bytes are no such message, CANCELLED when the caller is gone.
  // Memory that runs out in the handler is RESOURCE_EXHAUSTED, any other exception INTERNAL.
  template <typename Message, typename Answer>
  grpc::ServerUnaryReactor* Serve(
      grpc::CallbackServerContext* context, absl::string_view rpc, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response,
      std::function<absl::Status(Call&, const Message&, Answer*)> handler) {
    return ServeBytes<Message>(
        context, rpc, request, [](const Message&) { return Pace::kAny; },
        [response, handler = std::move(handler)](Call& call, const Message& message) {
          return Fill<Answer>(response,
                              [&](Answer* answer) { return handler(call, message, answer); });
        });
  }

  // The same when the handler writes the answer's bytes itself, at the pace that the message needs.
  template <typename Message>
  grpc::ServerUnaryReactor* ServeBytes(grpc::CallbackServerContext* context, absl::string_view rpc,
                                       const grpc::ByteBuffer* request,
                                       absl::FunctionRef<Pace(const Message&)> pace,
                                       std::function<absl::Status(Call&, const Message&)> handler) {
    auto* call = new UnaryCall(NewCall(context, rpc));
    BeginWith<Message>(call, request, pace, std::move(handler));
    return call;
  }

  // The same with an answer of many messages.
  template <typename Message, typename Answer>
  grpc::ServerWriteReactor<grpc::ByteBuffer>* ServeWriting(
      grpc::CallbackServerContext* context, absl::string_view rpc, const grpc::ByteBuffer* request,
      std::function<absl::Status(Call&, const Message&, MessageWriter<Answer>&)> handler) {
    auto* call = new WritingCall<Answer>(NewCall(context, rpc));
    BeginWith<Message>(
        call, request, [](const Message&) { return Pace::kAny; },
        [call, handler = std::move(handler)](Call&, const Message& message) {
          return handler(*call, message, *call);
        });
    return call;
  }

  // The same with many messages of the caller, each of which the handler shows to Call::Admit, and
  // an answer that goes out when it returns OK.
  template <typename Message, typename Answer>
  grpc::ServerReadReactor<grpc::ByteBuffer>* ServeReading(
      grpc::CallbackServerContext* context, absl::string_view rpc, grpc::ByteBuffer* response,
      std::function<absl::Status(Call&, MessageReader<Message>&, Answer*)> handler) {
    auto* call = new ReadingCall<Message>(NewCall(context, rpc));
    Begin(call, nullptr, Pace::kAny, [call, response, handler = std::move(handler)](Call&) {
      return Fill<Answer>(response, [&](Answer* answer) { return handler(*call, *call, answer); });
    });
    return call;
  }

  // For calls that begin from now on.
  void SetLimits(const Limits& limits);

 private:
  using Handler = std::function<absl::Status(Call&)>;

  template <typename Answer>
  static absl::Status Fill(grpc::ByteBuffer* response,
                           absl::FunctionRef<absl::Status(Answer*)> handler) {
    google::protobuf::Arena arena;
    auto* answer = google::protobuf::Arena::CreateMessage<Answer>(&arena);
    PM_RETURN_IF_ERROR(handler(answer));
    *response = ToWire(answer->SerializeAsString());
    return absl::OkStatus();
  }

  // Longer messages are parsed on a worker once their caller may call and has a place: until then
  // nobody can make the server work, or take memory, beyond what was sent. Shorter ones are parsed
  // at once, so that the logs can tell which collection a refused call was for.
  static constexpr size_t kParsedAtOnce = 65536;

  // With all of its parts in one piece of memory, unless that could be large: as a long message is
  // parsed, its fields grow, and an arena keeps what they have grown out of.
  template <typename Message>
  static std::shared_ptr<Message> NewMessage(size_t bytes) {
    if (bytes > kParsedAtOnce) return std::make_shared<Message>();
    const auto arena = std::make_shared<google::protobuf::Arena>();
    return {arena, google::protobuf::Arena::CreateMessage<Message>(arena.get())};
  }

  // Bytes that are no message are refused after everything that a key is refused for. `bytes` live
  // as long as the call.
  template <typename Message>
  void BeginWith(Call* call, const grpc::ByteBuffer* bytes,
                 absl::FunctionRef<Pace(const Message&)> pace,
                 std::function<absl::Status(Call&, const Message&)> handler) {
    const std::shared_ptr<Message> message = NewMessage<Message>(bytes->Length());
    const auto parse = [bytes, message, call] { return call->Parse(*bytes, message.get()); };
    if (bytes->Length() > kParsedAtOnce) {
      Begin(call, nullptr, Pace::kAny,
            [parse, message, handler = std::move(handler)](Call& it) -> absl::Status {
              PM_RETURN_IF_ERROR(parse());
              PM_RETURN_IF_ERROR(it.Admit(*message));
              return handler(it, *message);
            });
      return;
    }
    if (absl::Status parsed = Guarded(parse); !parsed.ok()) {
      Begin(call, nullptr, Pace::kBrief, [parsed = std::move(parsed)](Call&) { return parsed; });
      return;
    }
    Begin(call, message.get(), pace(*message),
          [message, handler = std::move(handler)](Call& it) { return handler(it, *message); });
  }

  // What `run` returns; memory that runs out in it is RESOURCE_EXHAUSTED, any other exception
  // INTERNAL.
  static absl::Status Guarded(absl::FunctionRef<absl::Status()> run);

  Call::Parts NewCall(grpc::CallbackServerContext* context, absl::string_view rpc);
  // Answers the call, now or from another thread. request: null when the handler shows messages to
  // Call::Admit, or there is none.
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
  ByteBudget parsed_{"memory of the messages of all calls in bytes", "max_parsed_memory"};
  LineBudget lines_;
  IdleCalls idle_;
  mutable std::mutex mutex_;  // guards limits_
  Limits limits_;
  Workers workers_;  // last: what they do uses the others
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_GATE_H_
