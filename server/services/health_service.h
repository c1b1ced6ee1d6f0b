// grpc.health.v1.Health for load balancers and container probes.
#ifndef PRIVATEMAIL_SERVER_SERVICES_HEALTH_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_HEALTH_SERVICE_H_

#include <atomic>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "grpc/health/v1/health.pb.h"
#include "server/engine/catalog.h"
#include "server/services/dispatcher.h"

namespace privatemail::server {

// Answers Check by service name; Watch is UNIMPLEMENTED. Replaces gRPC's own health service, which
// knows no keys. Thread-safe.
//   ""                             needs no key. SERVING until Drain.
//   "privatemail.writes"           needs no key. NOT_SERVING while the store is read-only.
//   "privatemail.collection.NAME"  needs a key for the collection, since the answer tells that it
//                                  exists. SERVING once it is built, or if it has no anchors,
//                                  or on a front, which does not know.
//                                  UNAUTHENTICATED, PERMISSION_DENIED, NOT_FOUND: no such
//                                  collection.
//   any other                      NOT_FOUND.
class HealthService {
 public:
  // Registers the handler. The catalog must outlive the service, and the service all calls.
  HealthService(const Catalog* catalog, Dispatcher* dispatcher) : catalog_(catalog) {
    using grpc::health::v1::HealthCheckRequest;
    using grpc::health::v1::HealthCheckResponse;
    dispatcher->ServeUnary<HealthCheckRequest, HealthCheckResponse>(
        "Check", [this](Call& call, const auto& request, auto* answer) -> absl::Status {
          PM_ASSIGN_OR_RETURN(const bool serving, IsServing(request.service(), call));
          answer->set_status(serving ? HealthCheckResponse::SERVING
                                     : HealthCheckResponse::NOT_SERVING);
          return absl::OkStatus();
        });
  }

  // From now on every answer is NOT_SERVING.
  void Drain() { draining_ = true; }
  bool draining() const { return draining_; }

 private:
  absl::StatusOr<bool> IsServing(const std::string& service, Call& call) const {
    if (service.empty()) return !draining_;
    if (service == "privatemail.writes") return !draining_ && !catalog_->read_only();
    absl::string_view collection = service;
    if (!absl::ConsumePrefix(&collection, "privatemail.collection.")) {
      return absl::NotFoundError(
          absl::StrCat("service must be '', 'privatemail.writes' or 'privatemail.collection.NAME', "
                       "but is '",
                       absl::CHexEscape(service.substr(0, 64)), "'"));
    }
    PM_RETURN_IF_ERROR(call.RecordAndCheckCollection(collection));
    PM_ASSIGN_OR_RETURN(const CollectionView view, catalog_->Find(collection));
    return !draining_ && (view.retriever != nullptr || catalog_->is_front() ||
                          !view.published->parameters.HasAnchors());
  }

  const Catalog* const catalog_;
  std::atomic<bool> draining_ = false;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_HEALTH_SERVICE_H_
