// grpc.health.v1.Health for load balancers and container probes.
#ifndef PRIVATEMAIL_SERVER_SERVICES_HEALTH_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_HEALTH_SERVICE_H_

#include <atomic>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "grpc/health/v1/health.pb.h"
#include "server/engine/catalog.h"
#include "server/services/collection_state.h"
#include "server/services/dispatcher.h"
#include "server/services/shards.h"

namespace privatemail::server {

// Answers Check by service name; Watch is UNIMPLEMENTED. Replaces gRPC's own health service, which
// knows no keys. Thread-safe.
//   ""                             needs no key. SERVING until Drain: on a shard once it has loaded
//                                  what the store had, on a front while a replica of each shard
//                                  serves.
//   "privatemail.writes"           needs no key. NOT_SERVING while the store is read-only.
//   "privatemail.collection.NAME"  needs a key for the collection, since the answer tells that it
//                                  exists. SERVING once it is built, or if it has no anchors,
//                                  and on a front if a replica of each shard says so.
//                                  UNAUTHENTICATED, PERMISSION_DENIED, NOT_FOUND: no such
//                                  collection.
//   any other                      NOT_FOUND.
class HealthService {
 public:
  // Registers the handler. The catalog and the shards (null: this is no front) must outlive the
  // service, and the service all calls.
  HealthService(const Catalog* catalog, const Shards* shards, Dispatcher* dispatcher)
      : catalog_(catalog), shards_(shards) {
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

  // Whether the server is SERVING.
  bool ready() {
    if (draining_) return false;
    if (shards_ != nullptr) return shards_->Serve();
    if (!catalog_->is_shard()) return true;
    // Collections that are added later do not take the others out of service.
    if (!has_loaded_) has_loaded_ = absl::c_all_of(catalog_->List(), IsLoaded);
    return has_loaded_;
  }

 private:
  absl::StatusOr<bool> IsServing(const std::string& service, Call& call) {
    if (service.empty()) return ready();
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
    // Without a shard the others need not be asked: gRPC's threads, on which this runs, are few.
    if (shards_ != nullptr) return ready() && shards_->Serve(service);
    return !draining_ && (view.retriever != nullptr || !view.published->parameters.HasAnchors());
  }

  const Catalog* const catalog_;
  const Shards* const shards_;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> has_loaded_ = false;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_HEALTH_SERVICE_H_
