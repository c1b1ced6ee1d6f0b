// v1.RetrievalService: public parameters, anchors, and retrieval.
#ifndef PRIVATEMAIL_SERVER_SERVICES_RETRIEVAL_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_RETRIEVAL_SERVICE_H_

#include "privatemail/v1/retrieval.grpc.pb.h"
#include "server/engine/catalog.h"
#include "server/services/dispatcher.h"

namespace privatemail::server {

// Adapter from v1.RetrievalService to a catalog; retrieval.proto lists the statuses. Thread-safe.
// Releases are used for their answer only and neither stored nor logged.
// Sources: retrieval_service.cc, retrieve_cells.cc.
class RetrievalService final
    : public RawService<v1::RetrievalService::Service,
                        v1::RetrievalService::WithRawCallbackMethod_GetCollection,
                        v1::RetrievalService::WithRawCallbackMethod_GetAnchors,
                        v1::RetrievalService::WithRawCallbackMethod_Retrieve,
                        v1::RetrievalService::WithRawCallbackMethod_RetrieveCells> {
 public:
  // Both must outlive the service.
  RetrievalService(const Catalog* catalog, Dispatcher* dispatcher)
      : catalog_(catalog), dispatcher_(dispatcher) {}

  UnaryReactor* GetCollection(RpcContext* context, const Bytes* request, Bytes* response) override;
  WriteReactor* GetAnchors(RpcContext* context, const Bytes* request) override;
  UnaryReactor* Retrieve(RpcContext* context, const Bytes* request, Bytes* response) override;
  WriteReactor* RetrieveCells(RpcContext* context, const Bytes* request) override;

 private:
  absl::Status Search(const v1::RetrieveRequest& request, Call& call, Bytes* response);
  // Whether the search costs less than a context switch, see Dispatcher::Execution.
  bool IsCheap(const v1::RetrieveRequest& request) const;

  absl::Status SendCells(const v1::RetrieveCellsRequest& request, Call& call,
                         MessageWriter<v1::RetrieveCellsResponse>& writer) const;

  const Catalog* const catalog_;
  Dispatcher* const dispatcher_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_RETRIEVAL_SERVICE_H_
