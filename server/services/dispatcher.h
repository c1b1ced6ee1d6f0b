// The gRPC service that serves every RPC of the daemon.
#ifndef PRIVATEMAIL_SERVER_SERVICES_DISPATCHER_H_
#define PRIVATEMAIL_SERVER_SERVICES_DISPATCHER_H_

#include <google/protobuf/arena.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/async_generic_service.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "server/services/call.h"

namespace privatemail::server {

// Makes a Call of each RPC, whose handler the Serve methods register before the server starts; the
// last one of an RPC counts. A handler runs only for an authorised call within all limits;
// otherwise the call ends with
//   UNAUTHENTICATED     no valid key came
//   PERMISSION_DENIED   the key is not for this RPC or collection (rpc_table.h)
//   RESOURCE_EXHAUSTED  the key exceeds its rate, the server is busy, or memory ran out
//   INVALID_ARGUMENT    the bytes are not a Request
//   CANCELLED           the caller is gone
//   FAILED_PRECONDITION a front takes the daemon for another shard
//   UNIMPLEMENTED       no handler is registered
// An exception in the handler is INTERNAL, std::bad_alloc RESOURCE_EXHAUSTED. Thread-safe.
class Dispatcher final : public grpc::CallbackGenericService {
 public:
  // All must outlive the dispatcher. keys: null if keys are off. audit: null for no audit log.
  // shard: as in the setting. collections: the names of all.
  Dispatcher(const KeyRing* keys, AuditLog* audit, Admission* admission, Metrics* metrics,
             std::string shard, std::set<std::string> trusted_proxies,
             std::function<std::vector<std::string>()> collections, const Limits& limits)
      : shared_{.keys = keys,
                .audit = audit,
                .admission = admission,
                .metrics = metrics,
                .shard = std::move(shard),
                .trusted_proxies = std::move(trusted_proxies),
                .collections = std::move(collections),
                .arriving = ArrivingMessages(limits)},
        limits_(limits) {}

  // Serves an RPC of one request, whose handler calls Call::SetAnswer once or Call::Write.
  template <typename Request>
  void Serve(const char* rpc, std::function<absl::Status(Call&, const Request&)> handler,
             std::function<bool(const Request&)> is_cheap = nullptr) {
    Method method = {.rpc = FindRpc(rpc),
                     .request = Request::default_instance(),
                     .streams_requests = false,
                     .handle = [handler = std::move(handler)](
                                   Call& call, const google::protobuf::Message* request) {
                       return handler(call, static_cast<const Request&>(*request));
                     }};
    if (is_cheap) {
      method.is_cheap = [is_cheap = std::move(is_cheap)](const google::protobuf::Message& request) {
        return is_cheap(static_cast<const Request&>(request));
      };
    }
    Add(std::move(method));
  }

  // Serves an RPC of one request and one answer, which the handler fills.
  template <typename Request, typename Answer>
  void ServeUnary(const char* rpc,
                  std::function<absl::Status(Call&, const Request&, Answer*)> handler) {
    Serve<Request>(rpc, [handler = std::move(handler)](Call& call, const Request& request) {
      return Fill<Answer>(call, [&](Answer* answer) { return handler(call, request, answer); });
    });
  }

  // Serves an RPC of many requests, which the handler reads, and one answer, which it fills.
  template <typename Request, typename Answer>
  void ServeUpload(const char* rpc, std::function<absl::Status(Call&, Answer*)> handler) {
    Add({.rpc = FindRpc(rpc),
         .request = Request::default_instance(),
         .streams_requests = true,
         .handle = [handler = std::move(handler)](Call& call,
                                                  const google::protobuf::Message* /*request*/) {
           return Fill<Answer>(call, [&](Answer* answer) { return handler(call, answer); });
         }});
  }

  // Applies to calls that start from now on.
  void SetLimits(const Limits& limits);

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return CreateCall(CameBy::kNetwork, context);
  }

  // The same RPCs, for a gRPC server without a port, which serves the gateway alone.
  grpc::CallbackGenericService* for_gateway() { return &for_gateway_; }

 private:
  class ForGateway final : public grpc::CallbackGenericService {
   public:
    explicit ForGateway(Dispatcher* dispatcher) : dispatcher_(dispatcher) {}
    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override {
      return dispatcher_->CreateCall(CameBy::kGateway, context);
    }

   private:
    Dispatcher* const dispatcher_;
  };

  grpc::ServerGenericBidiReactor* CreateCall(CameBy came_by,
                                             grpc::GenericCallbackServerContext* context);

  template <typename Answer>
  static absl::Status Fill(Call& call, absl::FunctionRef<absl::Status(Answer*)> handler) {
    google::protobuf::Arena arena;
    auto* answer = google::protobuf::Arena::CreateMessage<Answer>(&arena);
    PM_RETURN_IF_ERROR(handler(answer));
    call.SetAnswer(answer->SerializeAsString());
    return absl::OkStatus();
  }

  void Add(Method method);

  std::map<std::string, Method> methods_;  // by path: "/package.Service/Method"
  SharedByCalls shared_;
  std::mutex mutex_;  // guards limits_
  Limits limits_;
  ForGateway for_gateway_{this};
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_DISPATCHER_H_
