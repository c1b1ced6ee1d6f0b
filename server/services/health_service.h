// grpc.health.v1, for load balancers and container probes.
#ifndef PRIVATEMAIL_SERVER_SERVICES_HEALTH_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_HEALTH_SERVICE_H_

#include <atomic>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/engine/catalog.h"
#include "server/services/gate.h"

namespace privatemail::server {

// Check answers SERVING for the service "" until the daemon drains, without a key. For
// "privatemail.collection.NAME" it answers SERVING once the collection is built, and takes a key
// for that collection, since the answer tells that it exists: UNAUTHENTICATED, PERMISSION_DENIED;
// NOT_FOUND: no such collection, or no such service. Watch is UNIMPLEMENTED. gRPC's own health
// service knows no keys, which is why this one stands in for it. Thread-safe.
class HealthService final
    : public BytesService<grpc::health::v1::Health::Service,
                          grpc::health::v1::Health::WithRawCallbackMethod_Check,
                          grpc::health::v1::Health::WithCallbackMethod_Watch> {
 public:
  // Both must outlive the service.
  HealthService(const Catalog* catalog, Gate* gate) : catalog_(catalog), gate_(gate) {}

  // NOT_SERVING from now on, whatever is asked for.
  void Drain() { draining_ = true; }
  bool draining() const { return draining_; }

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;

 private:
  absl::StatusOr<bool> IsServing(const std::string& service, Call* call) const;

  const Catalog* const catalog_;
  Gate* const gate_;
  std::atomic<bool> draining_ = false;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_HEALTH_SERVICE_H_
