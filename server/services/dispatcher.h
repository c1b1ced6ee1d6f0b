// Entry point of every RPC: authentication, authorisation, quotas, metrics, audit log and log.
#ifndef PRIVATEMAIL_SERVER_SERVICES_DISPATCHER_H_
#define PRIVATEMAIL_SERVER_SERVICES_DISPATCHER_H_

#include <google/protobuf/arena.h>
#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "server/access/admission.h"
#include "server/access/audit_log.h"
#include "server/access/key_ring.h"
#include "server/access/limits.h"
#include "server/services/call.h"
#include "server/services/idle_calls.h"
#include "server/services/metrics.h"

namespace privatemail::server {

using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// A generated service whose methods exchange bytes: RawService<Service, A, B> is A<B<Service>>.
template <typename Service, template <typename> class... Methods>
struct RawServiceOf {
  using Type = Service;
};
template <typename Service, template <typename> class First, template <typename> class... Others>
struct RawServiceOf<Service, First, Others...> {
  using Type = First<typename RawServiceOf<Service, Others...>::Type>;
};
template <typename Service, template <typename> class... Methods>
using RawService = typename RawServiceOf<Service, Methods...>::Type;

// Runs handlers for authorised calls within all limits. Refusals are sent at once from gRPC's
// thread; handlers run on the dispatcher's worker threads, where they may block. Thread-safe.
class Dispatcher {
 public:
  // All must outlive the dispatcher.
  struct Dependencies {
    const KeyRing* keys = nullptr;  // null: keys are off, every caller has all rights
    AuditLog* audit = nullptr;      // null: no audit log
    Admission* admission = nullptr;
    Metrics* metrics = nullptr;
    std::set<std::string> trusted_proxies;  // addresses: 4 or 16 bytes
  };
  Dispatcher(const Dependencies& dependencies, const Limits& limits)
      : dependencies_(dependencies), limits_(limits) {}

  // kInline: the handler neither blocks nor computes for long (a context switch would cost more),
  // so it runs on gRPC's thread if a ticket is free at once.
  enum class Execution { kWorker, kInline };

  // Serves a unary call. The handler fills the answer. It does not run, and the call ends with
  //   UNAUTHENTICATED     no valid key came
  //   PERMISSION_DENIED   the key is not for this RPC or collection (rpc_table.h)
  //   RESOURCE_EXHAUSTED  the key exceeds its rate, the server is busy, or memory ran out
  //   INVALID_ARGUMENT    the bytes are not a Message
  //   CANCELLED           the caller is gone
  // An exception in the handler is INTERNAL, std::bad_alloc RESOURCE_EXHAUSTED.
  template <typename Message, typename Answer>
  UnaryReactor* ServeUnary(RpcContext* context, absl::string_view rpc, const Bytes* request,
                           Bytes* response,
                           std::function<absl::Status(Call&, const Message&, Answer*)> handler) {
    return ServeUnaryBytes<Message>(
        context, rpc, request, [](const Message&) { return Execution::kWorker; },
        [response, handler = std::move(handler)](Call& call, const Message& message) {
          return Fill<Answer>(response,
                              [&](Answer* answer) { return handler(call, message, answer); });
        });
  }

  // ServeUnary for a handler that encodes the answer itself and chooses its execution by message.
  template <typename Message>
  UnaryReactor* ServeUnaryBytes(RpcContext* context, absl::string_view rpc, const Bytes* request,
                                absl::FunctionRef<Execution(const Message&)> execution,
                                std::function<absl::Status(Call&, const Message&)> handler) {
    auto* call = new UnaryCall(NewCall(context, rpc));
    StartWithRequest<Message>(call, request, execution, std::move(handler));
    return call;
  }

  // ServeUnary with a stream of answers.
  template <typename Message, typename Answer>
  WriteReactor* ServeServerStream(
      RpcContext* context, absl::string_view rpc, const Bytes* request,
      std::function<absl::Status(Call&, const Message&, MessageWriter<Answer>&)> handler) {
    auto* call = new ServerStreamCall<Answer>(NewCall(context, rpc));
    StartWithRequest<Message>(
        call, request, [](const Message&) { return Execution::kWorker; },
        [call, handler = std::move(handler)](Call&, const Message& message) {
          return handler(*call, message, *call);
        });
    return call;
  }

  // ServeUnary with a stream of messages, for each of which the handler calls Call::CheckAccess.
  template <typename Message, typename Answer>
  ReadReactor* ServeClientStream(
      RpcContext* context, absl::string_view rpc, Bytes* response,
      std::function<absl::Status(Call&, MessageReader<Message>&, Answer*)> handler) {
    auto* call = new ClientStreamCall<Message>(NewCall(context, rpc));
    Start(call, nullptr, Execution::kWorker, [call, response, handler = std::move(handler)](Call&) {
      return Fill<Answer>(response, [&](Answer* answer) { return handler(*call, *call, answer); });
    });
    return call;
  }

  // For a call of a trusted proxy, before its message: UNAUTHENTICATED, and recorded, if no valid
  // key came and the RPC needs one. gRPC refuses RPCs that are unknown.
  absl::Status CheckHeader(const Metadata& metadata);

  // Applies to calls that start from now on.
  void SetLimits(const Limits& limits);

 private:
  using Handler = std::function<absl::Status(Call&)>;

  template <typename Answer>
  static absl::Status Fill(Bytes* response, absl::FunctionRef<absl::Status(Answer*)> handler) {
    google::protobuf::Arena arena;
    auto* answer = google::protobuf::Arena::CreateMessage<Answer>(&arena);
    PM_RETURN_IF_ERROR(handler(answer));
    *response = ToByteBuffer(answer->SerializeAsString());
    return absl::OkStatus();
  }

  // Longer messages are parsed on a worker after authorisation and admission, so that nobody
  // without rights causes work or memory. Shorter ones are parsed at once, so that the logs name
  // the collection of a refused call.
  static constexpr size_t kMaxInlineParseBytes = 65536;

  // On an arena if the message is small: an arena would keep the memory of outgrown fields.
  template <typename Message>
  static std::shared_ptr<Message> NewMessage(size_t bytes) {
    if (bytes > kMaxInlineParseBytes) return std::make_shared<Message>();
    const auto arena = std::make_shared<google::protobuf::Arena>();
    return {arena, google::protobuf::Arena::CreateMessage<Message>(arena.get())};
  }

  // Parse errors are reported only to callers that pass every access check. `bytes` live as long as
  // the call.
  template <typename Message>
  void StartWithRequest(Call* call, const Bytes* bytes,
                        absl::FunctionRef<Execution(const Message&)> execution,
                        std::function<absl::Status(Call&, const Message&)> handler) {
    const std::shared_ptr<Message> message = NewMessage<Message>(bytes->Length());
    const auto parse = [bytes, message, call] { return call->Parse(*bytes, message.get()); };
    if (bytes->Length() > kMaxInlineParseBytes) {
      Start(call, nullptr, Execution::kWorker,
            [parse, message, handler = std::move(handler)](Call& it) -> absl::Status {
              PM_RETURN_IF_ERROR(parse());
              PM_RETURN_IF_ERROR(it.CheckAccess(*message));
              return handler(it, *message);
            });
      return;
    }
    if (absl::Status parsed = CatchExceptions(parse); !parsed.ok()) {
      Start(call, nullptr, Execution::kInline,
            [parsed = std::move(parsed)](Call&) { return parsed; });
      return;
    }
    Start(call, message.get(), execution(*message),
          [message, handler = std::move(handler)](Call& it) { return handler(it, *message); });
  }

  // The result of `run`; std::bad_alloc and failed threads are RESOURCE_EXHAUSTED, any other
  // exception INTERNAL.
  static absl::Status CatchExceptions(absl::FunctionRef<absl::Status()> run);

  Call::Dependencies NewCall(RpcContext* context, absl::string_view rpc);
  // Runs the handler and finishes the call, now or on a worker. request: null if the handler itself
  // calls Call::CheckAccess.
  void Start(Call* call, const google::protobuf::Message* request, Execution execution,
             Handler handler);
  // The key that a call's metadata shows. UNAUTHENTICATED: no valid one.
  absl::StatusOr<std::shared_ptr<const AccessKey>> Authenticate(const Metadata& metadata) const;
  // The address of the connection or, without the port, the one that a trusted proxy names.
  std::string CallerOf(const RpcContext& context) const;
  // Sets the call's key and checks rate, scopes and collection.
  absl::Status Authorise(Call* call, const google::protobuf::Message* request);
  absl::Status CheckScopes(const Call& call) const;
  absl::Status EnterQueue(Call* call);
  absl::Status AwaitPlaceAndRun(Call* call, const Handler& handler);
  void Finish(Call* call, const absl::Status& status);
  void Record(const Call& call, const absl::Status& status);
  void Record(const AuditEntry& entry, bool has_key, bool probe, const absl::Status& status);
  Limits CurrentLimits() const;

  const Dependencies dependencies_;
  RateLimiter rates_;
  ByteQuota parsed_{"memory of the messages of all calls in bytes", "max_parsed_memory"};
  ByteQuota searches_{"memory of all searches in bytes", "max_search_memory"};
  LogLineQuota lines_;
  IdleCalls idle_;
  mutable std::mutex mutex_;  // guards limits_
  Limits limits_;
  ThreadPool thread_pool_;  // last: its jobs use the members above
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_DISPATCHER_H_
