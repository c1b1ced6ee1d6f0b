// What a searcher calls.
#ifndef PRIVATEMAIL_SERVER_SERVICES_RETRIEVAL_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_RETRIEVAL_SERVICE_H_

#include "privatemail/v1/retrieval.grpc.pb.h"
#include "server/engine/catalog.h"
#include "server/services/gate.h"

namespace privatemail::server {

// Adapter from v1.RetrievalService to a catalog; statuses as retrieval.proto lists them.
// Thread-safe. What a searcher releases is used for its answer and neither kept nor logged.
class RetrievalService final
    : public BytesService<v1::RetrievalService::Service,
                          v1::RetrievalService::WithRawCallbackMethod_GetCollection,
                          v1::RetrievalService::WithRawCallbackMethod_GetAnchors,
                          v1::RetrievalService::WithRawCallbackMethod_Retrieve,
                          v1::RetrievalService::WithRawCallbackMethod_RetrieveCells> {
 public:
  // Both must outlive the service.
  RetrievalService(const Catalog* catalog, Gate* gate) : catalog_(catalog), gate_(gate) {}

  grpc::ServerUnaryReactor* GetCollection(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* GetAnchors(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* Retrieve(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* RetrieveCells(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) override;

 private:
  absl::Status Answer(const v1::RetrieveRequest& request, Call& call, grpc::ByteBuffer* response);
  // Whether a search is over before another thread could have begun it.
  bool IsFast(const v1::RetrieveRequest& request) const;

  const Catalog* const catalog_;
  Gate* const gate_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_RETRIEVAL_SERVICE_H_
