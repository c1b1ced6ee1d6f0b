// What an operator calls.
#ifndef PRIVATEMAIL_SERVER_SERVICES_COLLECTIONS_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_COLLECTIONS_SERVICE_H_

#include <atomic>
#include <mutex>

#include "privatemail/v1/collections.grpc.pb.h"
#include "server/access/byte_budget.h"
#include "server/engine/catalog.h"
#include "server/services/gate.h"

namespace privatemail::server {

// Adapter from v1.CollectionsService to a catalog; statuses as collections.proto lists them.
// Thread-safe. Sees the operator's gallery, which the server holds in the clear, and logs none of
// it.
class CollectionsService final
    : public BytesService<v1::CollectionsService::Service,
                          v1::CollectionsService::WithRawCallbackMethod_CreateCollection,
                          v1::CollectionsService::WithRawCallbackMethod_ListCollections,
                          v1::CollectionsService::WithRawCallbackMethod_DeleteCollection,
                          v1::CollectionsService::WithRawCallbackMethod_UpsertItems,
                          v1::CollectionsService::WithRawCallbackMethod_BuildEmbedding,
                          v1::CollectionsService::WithRawCallbackMethod_DeleteItems,
                          v1::CollectionsService::WithRawCallbackMethod_GetItems,
                          v1::CollectionsService::WithRawCallbackMethod_ScrollItems,
                          v1::CollectionsService::WithRawCallbackMethod_CountItems,
                          v1::CollectionsService::WithRawCallbackMethod_SnapshotCollection,
                          v1::CollectionsService::WithRawCallbackMethod_RestoreCollection> {
 public:
  // Both must outlive the service.
  CollectionsService(Catalog* catalog, Gate* gate) : catalog_(catalog), gate_(gate) {}

  grpc::ServerUnaryReactor* CreateCollection(grpc::CallbackServerContext* context,
                                             const grpc::ByteBuffer* request,
                                             grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListCollections(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* DeleteCollection(grpc::CallbackServerContext* context,
                                             const grpc::ByteBuffer* request,
                                             grpc::ByteBuffer* response) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* UpsertItems(grpc::CallbackServerContext* context,
                                                         grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* BuildEmbedding(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* DeleteItems(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetItems(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ScrollItems(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CountItems(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* SnapshotCollection(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* RestoreCollection(grpc::CallbackServerContext* context,
                                                               grpc::ByteBuffer* response) override;

 private:
  // Whether one more collection may be made, with those that are being restored.
  absl::Status CheckOneMore(const Limits& limits) const;
  // Takes a place for a collection until the other is called.
  absl::Status BeginRestore(const Limits& limits);
  void EndRestore() { --restoring_; }
  absl::Status Restore(Call& call, MessageReader<v1::RestoreCollectionRequest>& reader,
                       v1::RestoreCollectionResponse* response);

  Catalog* const catalog_;
  Gate* const gate_;
  std::mutex create_mutex_;  // so that two calls cannot both take the last place
  std::atomic<int64_t> restoring_ = 0;
  // Of snapshots that are taken or restored, in the file system of the data directory.
  ByteBudget snapshot_bytes_{"number of bytes of all snapshots under way", "max_snapshot_bytes"};
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_COLLECTIONS_SERVICE_H_
