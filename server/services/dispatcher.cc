#include "server/services/dispatcher.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace privatemail::server {

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
  if (found == methods_.end()) return CallbackGenericService::CreateReactor(context);
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
