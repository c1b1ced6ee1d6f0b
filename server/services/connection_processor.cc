#include "server/services/connection_processor.h"

#include <exception>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace privatemail::server {
namespace {

constexpr char kProperty[] = "privatemail_connection";

}  // namespace

uint64_t ConnectionOf(const grpc::AuthContext& context) {
  const auto known = context.FindPropertyValues(kProperty);
  uint64_t number = 0;
  if (known.empty()) return 0;
  return absl::SimpleAtoi(absl::string_view(known[0].data(), known[0].size()), &number) ? number
                                                                                        : 0;
}

uint64_t ConnectionProcessor::Identify(grpc::AuthContext* context) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const uint64_t known = ConnectionOf(*context);
  if (known != 0) return known;
  const uint64_t number = connections_->InSlot(slot_);
  context->AddProperty(kProperty, absl::StrCat(number));
  return number;
}

grpc::Status ConnectionProcessor::Process(const InputMetadata& metadata, grpc::AuthContext* context,
                                          OutputMetadata* /*consumed*/,
                                          OutputMetadata* /*response*/) try {
  const uint64_t connection = Identify(context);
  const auto now = Connections::Clock::now();
  if (connections_->IsUnauthenticated(connection)) {
    const auto key = dispatcher_->Authenticate(metadata);
    if (key.ok()) connections_->Authenticate(connection, **key, now);
  }
  connections_->BeginCall(connection, now);
  return grpc::Status::OK;
} catch (const std::exception&) {  // gRPC's frames must not see it
  return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the server has not enough memory");
}

}  // namespace privatemail::server
