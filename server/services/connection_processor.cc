#include "server/services/connection_processor.h"

#include <exception>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/rpc/status.h"
#include "server/services/call.h"

namespace privatemail::server {
uint64_t ConnectionProcessor::Identify(grpc::AuthContext* context) {
  const std::lock_guard<std::mutex> guard(mutex_);
  // Also a 0: other calls read the properties without the lock, so that only the first may add one.
  if (const std::optional<uint64_t> known = ConnectionOf(*context)) return *known;
  const uint64_t number = connections_->InSlot(slot_);
  if (connections_->IsForProxies(slot_)) context->AddProperty(kProxyProperty, "1");
  context->AddProperty(kConnectionProperty, absl::StrCat(number));
  return number;
}

grpc::Status ConnectionProcessor::Process(const InputMetadata& metadata, grpc::AuthContext* context,
                                          OutputMetadata* /*consumed*/,
                                          OutputMetadata* /*response*/) try {
  const uint64_t connection = Identify(context);
  const auto now = Connections::Clock::now();
  const bool proxied = connections_->IsForProxies(slot_);
  if (proxied || connections_->IsUnauthenticated(connection)) {
    const auto key = dispatcher_->Authenticate(metadata);
    // The next call of a proxy's connection may have a key.
    const AccessKey none;
    if (proxied || key.ok()) connections_->Authenticate(connection, key.ok() ? **key : none, now);
    if (proxied && dispatcher_->RefuseAtHeader(metadata, *context, key.status())) {
      return ToGrpc(key.status());
    }
  }
  connections_->BeginCall(connection, now);
  return grpc::Status::OK;
} catch (const std::exception&) {  // gRPC's frames must not see it
  return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the server has not enough memory");
}

}  // namespace privatemail::server
