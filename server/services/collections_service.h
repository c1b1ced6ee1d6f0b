// v1.CollectionsService: collections, items, builds and snapshots.
#ifndef PRIVATEMAIL_SERVER_SERVICES_COLLECTIONS_SERVICE_H_
#define PRIVATEMAIL_SERVER_SERVICES_COLLECTIONS_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/base/cancellable_mutex.h"
#include "privatemail/v1/collections.pb.h"
#include "server/access/limits.h"
#include "server/engine/catalog.h"
#include "server/services/dispatcher.h"

namespace privatemail::server {

// Adapter from v1.CollectionsService to a catalog; collections.proto lists the statuses.
// Thread-safe. Sees the gallery, which the server holds in the clear, and logs none of it.
// Sources: collections_service.cc, items_service.cc (single items), snapshot_service.cc.
class CollectionsService {
 public:
  // Registers the handlers. The catalog must outlive the service, and the service all calls.
  CollectionsService(Catalog* catalog, Dispatcher* dispatcher);

 private:
  void ServeItems(Dispatcher* dispatcher);
  void ServeSnapshots(Dispatcher* dispatcher);
  // RESOURCE_EXHAUSTED: one more collection, besides reserved ones, would exceed max_collections.
  absl::Status CheckCollectionQuota(const Limits& limits) const;
  // Counts a collection that is being created or restored against max_collections until
  // ReleaseCollection.
  absl::Status ReserveCollection(const Limits& limits);
  void ReleaseCollection() { --reserved_; }
  std::shared_ptr<CancellableMutex> CreationsOf(const std::string& key);
  // Cancelled with the call. RESOURCE_EXHAUSTED: max_create_seconds.
  absl::StatusOr<CollectionView> Create(const Call& call, NewCollection collection);
  absl::Status Restore(Call& call, v1::RestoreCollectionResponse* response);

  Catalog* const catalog_;
  std::mutex create_mutex_;  // guards creations_; makes quota check and reservation atomic
  // By key, while it creates: preparing a collection takes a core for long, so a key prepares one
  // at a time.
  std::map<std::string, std::weak_ptr<CancellableMutex>> creations_;
  std::atomic<int64_t> reserved_ = 0;
  // Scratch files of running snapshots and restores, in the data directory.
  ByteQuota snapshot_bytes_{"number of bytes of all snapshots under way", "max_snapshot_bytes"};
};

// INVALID_ARGUMENT: message `number` (from 0) of a stream names another collection than the first.
// consequence: ends the error.
absl::Status CheckSameCollection(absl::string_view first, absl::string_view actual, int64_t number,
                                 absl::string_view consequence);

// RESOURCE_EXHAUSTED if `anchors` x `dims` anchors exceed max_anchors, max_dims or
// max_request_memory. `whose` ends the quantity: " of the snapshot".
absl::Status CheckAnchorLimits(absl::string_view whose, int64_t anchors, int64_t dims,
                               const Limits& limits);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_COLLECTIONS_SERVICE_H_
