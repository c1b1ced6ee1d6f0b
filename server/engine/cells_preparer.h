// Background preparation of approximate indexes and cell indexes.
#ifndef PRIVATEMAIL_SERVER_ENGINE_CELLS_PREPARER_H_
#define PRIVATEMAIL_SERVER_ENGINE_CELLS_PREPARER_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/background_queue.h"
#include "server/cells/cell_index.h"
#include "server/engine/collection_registry.h"
#include "server/engine/hidden_rows.h"
#include "server/engine/retriever.h"
#include "server/store/store.h"
#include "server/store/types.h"

namespace privatemail::server {

// Completes an installed embedding in the background: an approximate index, until which the exact
// one answers, and a cell index of the items stored by then, whose quality is measured afterwards
// if the collection publishes it. Thread-safe.
class CellsPreparer {
 public:
  // Both must outlive it.
  CellsPreparer(Store* store, CollectionRegistry* registry) : store_(store), registry_(registry) {}

  // Queues these jobs for the current retriever.
  void Schedule(const CollectionRegistry::EntryPtr& entry);

 private:
  using Entry = CollectionRegistry::Entry;

  // Records a failure in the view; throws nothing.
  void PrepareCells(const CollectionRegistry::EntryPtr& entry, const std::atomic<bool>& stopped);
  absl::Status BuildCells(const CollectionRegistry::EntryPtr& entry, CollectionView view,
                          const std::atomic<bool>& stopped);
  absl::Status CheckResidentMemory(const Entry& entry, const PublicParameters& parameters,
                                   const Gallery& gallery) const;
  // Queues it. Ends early if other cells are installed or the collection is removed.
  void MeasureQuality(const CollectionRegistry::EntryPtr& entry,
                      const std::shared_ptr<const CellIndex>& cells, QualitySample sample);

  Store* const store_;
  CollectionRegistry* const registry_;
  // Last: their jobs use the other members. Of their own, because measurements can take minutes.
  BackgroundQueue measurements_;
  BackgroundQueue queue_;
};

// Removes items from the gallery that the embedding does not have or that are hidden there (null:
// none), and returns the coordinates of the others. These get the labels, payloads and version of
// the embedding and keep the gallery's features. The gallery must not be older than the embedding.
// FAILED_PRECONDITION: coordinates that overflow in float, or anchors that cannot be aligned in
// float. O(n log n).
absl::StatusOr<CellCoordinates> RestrictToEmbedding(const Retriever& retriever,
                                                    const HiddenRows* hidden, Gallery* gallery);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_CELLS_PREPARER_H_
