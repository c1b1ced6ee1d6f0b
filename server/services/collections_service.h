// What an operator calls.
#ifndef PRIVATEMAIL_SERVER_SERVICES_COLLECTIONS_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_COLLECTIONS_SERVICE_H_

#include <mutex>

#include "privatemail/v1/collections.grpc.pb.h"
#include "server/engine/catalog.h"
#include "server/services/gate.h"

namespace privatemail {

// Adapter from v1.CollectionsService to a catalog; statuses as collections.proto lists them.
// Thread-safe. Sees the operator's gallery, which the server holds in the clear, and logs none of
// it.
class CollectionsService final : public v1::CollectionsService::Service {
 public:
  // Both must outlive the service.
  CollectionsService(Catalog* catalog, Gate* gate) : catalog_(catalog), gate_(gate) {}

  grpc::Status CreateCollection(grpc::ServerContext* context,
                                const v1::CreateCollectionRequest* request,
                                v1::CreateCollectionResponse* response) override;
  grpc::Status ListCollections(grpc::ServerContext* context,
                               const v1::ListCollectionsRequest* request,
                               v1::ListCollectionsResponse* response) override;
  grpc::Status DeleteCollection(grpc::ServerContext* context,
                                const v1::DeleteCollectionRequest* request,
                                v1::DeleteCollectionResponse* response) override;
  grpc::Status UpsertItems(grpc::ServerContext* context,
                           grpc::ServerReader<v1::UpsertItemsRequest>* reader,
                           v1::UpsertItemsResponse* response) override;
  grpc::Status BuildEmbedding(grpc::ServerContext* context,
                              const v1::BuildEmbeddingRequest* request,
                              grpc::ServerWriter<v1::BuildEmbeddingResponse>* writer) override;
  grpc::Status DeleteItems(grpc::ServerContext* context, const v1::DeleteItemsRequest* request,
                           v1::DeleteItemsResponse* response) override;
  grpc::Status GetItems(grpc::ServerContext* context, const v1::GetItemsRequest* request,
                        v1::GetItemsResponse* response) override;
  grpc::Status ScrollItems(grpc::ServerContext* context, const v1::ScrollItemsRequest* request,
                           v1::ScrollItemsResponse* response) override;
  grpc::Status CountItems(grpc::ServerContext* context, const v1::CountItemsRequest* request,
                          v1::CountItemsResponse* response) override;
  grpc::Status SnapshotCollection(
      grpc::ServerContext* context, const v1::SnapshotCollectionRequest* request,
      grpc::ServerWriter<v1::SnapshotCollectionResponse>* writer) override;
  grpc::Status RestoreCollection(grpc::ServerContext* context,
                                 grpc::ServerReader<v1::RestoreCollectionRequest>* reader,
                                 v1::RestoreCollectionResponse* response) override;

 private:
  Catalog* const catalog_;
  Gate* const gate_;
  std::mutex create_mutex_;  // so that two calls cannot both take the last place
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_SERVICES_COLLECTIONS_SERVICE_H_
