#include "server/services/health_service.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace privatemail::server {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

absl::StatusOr<bool> HealthService::IsServing(const std::string& service, Call* call) const {
  if (service.empty()) return !draining_;
  absl::string_view collection = service;
  if (!absl::ConsumePrefix(&collection, "privatemail.collection.")) {
    return absl::NotFoundError(
        absl::StrCat("service must be '' or 'privatemail.collection.NAME', but is '",
                     absl::CHexEscape(service.substr(0, 64)), "'"));
  }
  PM_RETURN_IF_ERROR(call->RequireCollection(collection));
  PM_ASSIGN_OR_RETURN(const CollectionView view, catalog_->Find(collection));
  return !draining_ && view.retriever != nullptr;
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const grpc::ByteBuffer* request,
                                               grpc::ByteBuffer* response) {
  return gate_->Serve<HealthCheckRequest, HealthCheckResponse>(
      context, "Check", request, response,
      [this](Call& call, const HealthCheckRequest& message,
             HealthCheckResponse* answer) -> absl::Status {
        PM_ASSIGN_OR_RETURN(const bool serving, IsServing(message.service(), &call));
        answer->set_status(serving ? HealthCheckResponse::SERVING
                                   : HealthCheckResponse::NOT_SERVING);
        return absl::OkStatus();
      });
}

}  // namespace privatemail::server
