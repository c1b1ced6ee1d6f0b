// v1.CollectionsService: collections, items, builds and snapshots.
#ifndef PRIVATEMAIL_SERVER_SERVICES_COLLECTIONS_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_COLLECTIONS_SERVICE_H_

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "common/base/single_flight_lru_cache.h"
#include "privatemail/v1/collections.grpc.pb.h"
#include "server/access/limits.h"
#include "server/engine/catalog.h"
#include "server/services/dispatcher.h"

namespace privatemail::server {

// Adapter from v1.CollectionsService to a catalog; collections.proto lists the statuses.
// Thread-safe. Sees the gallery, which the server holds in the clear, and logs none of it.
// Sources: collections_service.cc, items_service.cc (single items), snapshot_service.cc.
class CollectionsService final
    : public RawService<v1::CollectionsService::Service,
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
  // All must outlive the service.
  CollectionsService(Catalog* catalog, Dispatcher* dispatcher)
      : catalog_(catalog), dispatcher_(dispatcher) {}

  UnaryReactor* CreateCollection(RpcContext* context, const Bytes* request,
                                 Bytes* response) override;
  UnaryReactor* ListCollections(RpcContext* context, const Bytes* request,
                                Bytes* response) override;
  UnaryReactor* DeleteCollection(RpcContext* context, const Bytes* request,
                                 Bytes* response) override;
  ReadReactor* UpsertItems(RpcContext* context, Bytes* response) override;
  WriteReactor* BuildEmbedding(RpcContext* context, const Bytes* request) override;
  UnaryReactor* DeleteItems(RpcContext* context, const Bytes* request, Bytes* response) override;
  UnaryReactor* GetItems(RpcContext* context, const Bytes* request, Bytes* response) override;
  UnaryReactor* ScrollItems(RpcContext* context, const Bytes* request, Bytes* response) override;
  UnaryReactor* CountItems(RpcContext* context, const Bytes* request, Bytes* response) override;
  WriteReactor* SnapshotCollection(RpcContext* context, const Bytes* request) override;
  ReadReactor* RestoreCollection(RpcContext* context, Bytes* response) override;

 private:
  // RESOURCE_EXHAUSTED: one more collection, besides reserved ones, would exceed max_collections.
  absl::Status CheckCollectionQuota(const Limits& limits) const;
  // Counts a collection that is being created or restored against max_collections until
  // ReleaseCollection.
  absl::Status ReserveCollection(const Limits& limits);
  void ReleaseCollection() { --reserved_; }
  // Cancelled with the call. RESOURCE_EXHAUSTED: max_create_seconds.
  absl::StatusOr<CollectionView> Create(const Call& call, NewCollection collection);
  CancellableMutex& CreationsOf(const std::string& key_id);
  absl::Status Restore(Call& call, MessageReader<v1::RestoreCollectionRequest>& reader,
                       v1::RestoreCollectionResponse* response);

  Catalog* const catalog_;
  Dispatcher* const dispatcher_;
  std::mutex create_mutex_;  // guards creations_; makes quota check and reservation atomic
  // By key: preparing a collection takes a core for long, so a key prepares one at a time.
  std::map<std::string, CancellableMutex> creations_;
  std::atomic<int64_t> reserved_ = 0;
  // Scratch files of running snapshots and restores, in the data directory.
  ByteQuota snapshot_bytes_{"number of bytes of all snapshots under way", "max_snapshot_bytes"};
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_COLLECTIONS_SERVICE_H_
