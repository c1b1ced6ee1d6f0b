#include "server/services/dispatcher.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace privatemail::server {
namespace {

// Ends a call of an RPC that has no handler.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const std::string& reason) {
    Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, reason));
  }
  void OnDone() override { delete this; }
};

}  // namespace

void Dispatcher::Add(Method method) {
  const google::protobuf::FileDescriptor& file = *method.request.GetDescriptor()->file();
  for (int i = 0; i < file.service_count(); ++i) {
    if (file.service(i)->FindMethodByName(method.rpc.name) == nullptr) continue;
    // Method cannot be assigned.
    const std::string path = absl::StrCat("/", file.service(i)->full_name(), "/", method.rpc.name);
    methods_.erase(path);
    methods_.emplace(path, std::move(method));
    return;
  }
  std::fprintf(stderr, "no service in the file of its request has the RPC %s\n", method.rpc.name);
  std::abort();
}

grpc::ServerGenericBidiReactor* Dispatcher::CreateCall(
    CameBy came_by, grpc::GenericCallbackServerContext* context) {
  const auto found = methods_.find(context->method());
  if (found == methods_.end()) {
    return new Refusal(absl::StrCat(
        "this daemon does not serve ", absl::CHexEscape(context->method().substr(0, 64)),
        shared_.shard.empty() ? "" : ": it is a shard, call its front"));
  }
  const Limits limits = [this] {
    const std::lock_guard<std::mutex> guard(mutex_);
    return limits_;
  }();
  return new Call(found->second, limits, came_by, context, &shared_);
}

void Dispatcher::SetLimits(const Limits& limits) {
  shared_.admission->SetLimits(limits);
  const std::lock_guard<std::mutex> guard(mutex_);
  limits_ = limits;
}

}  // namespace privatemail::server
