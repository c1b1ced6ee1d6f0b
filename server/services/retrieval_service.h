// What a searcher calls.
#ifndef PRIVATEMAIL_SERVER_SERVICES_RETRIEVAL_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_RETRIEVAL_SERVICE_H_

#include "privatemail/v1/retrieval.grpc.pb.h"
#include "server/engine/catalog.h"
#include "server/services/gate.h"

namespace privatemail {

// Adapter from v1.RetrievalService to a catalog; statuses as retrieval.proto lists them.
// Thread-safe. What a searcher releases is used for its answer and neither kept nor logged.
class RetrievalService final : public v1::RetrievalService::CallbackService {
 public:
  // Both must outlive the service.
  RetrievalService(const Catalog* catalog, Gate* gate) : catalog_(catalog), gate_(gate) {}

  grpc::ServerUnaryReactor* GetCollection(grpc::CallbackServerContext* context,
                                          const v1::GetCollectionRequest* request,
                                          v1::GetCollectionResponse* response) override;
  grpc::ServerWriteReactor<v1::GetAnchorsResponse>* GetAnchors(
      grpc::CallbackServerContext* context, const v1::GetAnchorsRequest* request) override;
  grpc::ServerUnaryReactor* Retrieve(grpc::CallbackServerContext* context,
                                     const v1::RetrieveRequest* request,
                                     v1::RetrieveResponse* response) override;

 private:
  const Catalog* const catalog_;
  Gate* const gate_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_SERVICES_RETRIEVAL_SERVICE_H_
