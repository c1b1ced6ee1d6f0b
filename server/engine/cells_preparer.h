// Background preparation of approximate indexes and cell indexes.
#ifndef PRIVATEMAIL_SERVER_ENGINE_CELLS_PREPARER_H_
#define PRIVATEMAIL_SERVER_ENGINE_CELLS_PREPARER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

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
// one answers, and a cell index of its items, whose quality is measured afterwards if the
// collection publishes it. Index and quality are read from the store, or made and stored there:
// once for each embedding, by one of the daemons on the store. Thread-safe.
class CellsPreparer {
 public:
  using Warn = std::function<void(const std::string& message)>;

  // Both must outlive it. warn: may be empty; called from other threads, about cells that are
  // damaged or cannot be stored, which are answered all the same.
  CellsPreparer(Store* store, CollectionRegistry* registry, Warn warn = nullptr)
      : store_(store), registry_(registry), warn_(std::move(warn)) {}

  // Queues these jobs for the current retriever.
  void Schedule(const CollectionRegistry::EntryPtr& entry);

 private:
  using Entry = CollectionRegistry::Entry;

  // Records a failure in the view; throws nothing.
  void PrepareCells(const CollectionRegistry::EntryPtr& entry, const std::atomic<bool>& stopped);
  absl::Status LoadOrBuildCells(const CollectionRegistry::EntryPtr& entry, CollectionView view,
                                const std::atomic<bool>& stopped);
  // Installs what the store has; false: nothing.
  absl::StatusOr<bool> LoadCells(Entry* entry, const CollectionView& view);
  absl::Status BuildCells(const CollectionRegistry::EntryPtr& entry, CollectionView view,
                          bool is_stored, const std::atomic<bool>& stopped);
  // Warns unless it is OK or another embedding has replaced theirs.
  void WarnUnlessStored(const PublishedCollection& published, const absl::Status& stored) const;
  absl::Status CheckResidentMemory(const Entry& entry, const PublicParameters& parameters,
                                   const Gallery& gallery) const;
  // Queues it, and stores it. Ends early if other cells are installed or the collection is removed.
  void MeasureQuality(const CollectionRegistry::EntryPtr& entry,
                      const std::shared_ptr<const CellIndex>& cells, QualitySample sample);

  Store* const store_;
  CollectionRegistry* const registry_;
  const Warn warn_;
  // Last: their jobs use the other members. Of their own, because measurements can take minutes.
  BackgroundQueue measurements_;
  BackgroundQueue queue_;
};

// Removes items from the gallery that the embedding does not have or that are hidden there (null:
// none), and returns the coordinates of the others, if wanted. These get the labels, payloads and
// version of the embedding and keep the gallery's features. The gallery must not be older than the
// embedding.
// FAILED_PRECONDITION: coordinates that overflow in float, or anchors that cannot be aligned in
// float. O(n log n).
absl::StatusOr<CellCoordinates> RestrictToEmbedding(const Retriever& retriever,
                                                    const HiddenRows* hidden, bool with_coordinates,
                                                    Gallery* gallery);

// Takes the payloads of stored contents from their embedding. DATA_LOSS: they are of another one.
absl::Status TakePayloads(const Retriever& retriever, CellContents* contents);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_CELLS_PREPARER_H_
