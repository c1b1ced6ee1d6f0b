// Background preparation of approximate indexes and cell indexes.
#ifndef PRIVATEMAIL_SERVER_ENGINE_CELLS_PREPARER_H_
#define PRIVATEMAIL_SERVER_ENGINE_CELLS_PREPARER_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "common/base/background_queue.h"
#include "server/engine/collection_registry.h"
#include "server/store/store.h"

namespace privatemail::server {

// Completes an installed embedding in the background: an approximate index, until which the exact
// one answers, and a cell index of the items stored by then. Thread-safe.
class CellsPreparer {
 public:
  // Both must outlive it.
  CellsPreparer(Store* store, CollectionRegistry* registry) : store_(store), registry_(registry) {}

  // Queues both jobs for the current retriever.
  void Schedule(const CollectionRegistry::EntryPtr& entry);

 private:
  using Entry = CollectionRegistry::Entry;

  // Records a failure in the view; throws nothing.
  void PrepareCells(Entry* entry, const std::atomic<bool>& stopped);
  absl::Status BuildCells(Entry* entry, CollectionView view, const std::atomic<bool>& stopped);

  Store* const store_;
  CollectionRegistry* const registry_;
  BackgroundQueue queue_;  // last: its jobs use the other members
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_CELLS_PREPARER_H_
