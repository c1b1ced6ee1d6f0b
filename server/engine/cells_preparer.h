// Background preparation of cell indexes.
#ifndef PRIVATEMAIL_SERVER_ENGINE_CELLS_PREPARER_H_
#define PRIVATEMAIL_SERVER_ENGINE_CELLS_PREPARER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/background_queue.h"
#include "common/numerics/row_source.h"
#include "server/cells/cell_index.h"
#include "server/engine/collection_registry.h"
#include "server/engine/hidden_rows.h"
#include "server/engine/retriever.h"
#include "server/store/store.h"
#include "server/store/types.h"

namespace privatemail::server {

// Completes an installed embedding in the background: a cell index of its items, whose quality is
// measured afterwards if the collection publishes it. Both are read from the store, or made and
// stored there: the index once for each embedding, by one of the daemons on the store; the quality,
// with an index of its own, by each daemon that does not find it stored. Thread-safe.
class CellsPreparer {
 public:
  using Warn = std::function<void(const std::string& message)>;

  // Both must outlive it. directory: for scratch files of features that exceed cells_memory. warn:
  // may be empty; called from other threads, about cells that are damaged or cannot be stored,
  // which are answered all the same.
  CellsPreparer(Store* store, CollectionRegistry* registry, std::string directory,
                Warn warn = nullptr)
      : store_(store),
        registry_(registry),
        directory_(std::move(directory)),
        warn_(std::move(warn)) {}

  // Queues this job for the current retriever.
  void Schedule(const CollectionRegistry::EntryPtr& entry);

 private:
  using Entry = CollectionRegistry::Entry;

  // The inputs of CellIndex::Create.
  struct CellInputs {
    Gallery gallery;                         // without features
    std::unique_ptr<const RowSource> items;  // their unit rows
  };

  // Queues PrepareCells. While another daemon makes the cells it goes back to the end of the queue,
  // so that other collections do not wait for that daemon. wait_until: nullopt: from its start on.
  void QueueCells(std::weak_ptr<Entry> entry, std::optional<absl::Time> wait_until);
  // False: another daemon makes them, and wait_until has not come. Records a failure in the view;
  // throws nothing.
  bool PrepareCells(const CollectionRegistry::EntryPtr& entry, absl::Time wait_until,
                    const std::atomic<bool>& stopped);
  absl::StatusOr<bool> LoadOrBuildCells(const CollectionRegistry::EntryPtr& entry,
                                        CollectionView view, absl::Time wait_until,
                                        const std::atomic<bool>& stopped);
  // Installs what the store has; false: nothing.
  absl::StatusOr<bool> LoadCells(Entry* entry, const CollectionView& view);
  absl::Status BuildCells(const CollectionRegistry::EntryPtr& entry, CollectionView view,
                          bool is_stored, const std::atomic<bool>& stopped);
  // Features are in memory if all that the index takes fits into cells_memory, or else in a file.
  absl::StatusOr<CellInputs> ReadInputs(const CollectionView& view,
                                        const std::atomic<bool>& stopped);
  // Warns unless it is OK or another embedding has replaced theirs.
  void WarnUnlessStored(const PublishedCollection& published, const absl::Status& stored) const;
  absl::Status CheckResidentMemory(const Entry& entry, const PublicParameters& parameters,
                                   const Gallery& gallery) const;
  // Queues it, and stores it. Ends early if other cells are installed or the collection is removed.
  void MeasureQuality(const CollectionRegistry::EntryPtr& entry,
                      const std::shared_ptr<const CellIndex>& cells, QualitySample sample);

  Store* const store_;
  CollectionRegistry* const registry_;
  const std::string directory_;
  const Warn warn_;
  // Last: their jobs use the other members. Of their own, because measurements can take minutes.
  BackgroundQueue measurements_;
  BackgroundQueue queue_;
};

// A filter of a gallery, part by part, for items of an embedding that are not hidden there. The
// gallery must not be older than the embedding; its parts ascend by id. Not thread-safe.
class EmbeddingFilter {
 public:
  // hidden: null: none. Both must outlive it.
  EmbeddingFilter(const Retriever& retriever, const HiddenRows* hidden)
      : retriever_(retriever), hidden_(hidden) {}

  // Removes the other items of the next part. The rest get the labels, payloads and version of the
  // embedding and keep the part's features. All parts: O(n).
  void Keep(Gallery* part);

 private:
  const Retriever& retriever_;
  const HiddenRows* const hidden_;
  int64_t next_ = 0;  // row of the embedding
};

// Takes the payloads of stored contents from their embedding. DATA_LOSS: they are of another one.
absl::Status TakePayloads(const Retriever& retriever, CellContents* contents);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_ENGINE_CELLS_PREPARER_H_
