// What answers for the cells of a collection.
#ifndef PRIVATEMAIL_SERVER_CELLS_CELL_INDEX_H_
#define PRIVATEMAIL_SERVER_CELLS_CELL_INDEX_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/protocol/public_parameters.h"
#include "server/cells/demand.h"
#include "server/cells/item_cells.h"
#include "server/store/types.h"

namespace privatemail {

// One gallery, ready to answer for the cells of all partitions of its collection's anchors. Knows
// nothing of a searcher but what is asked for. Immutable but for what it keeps; thread-safe.
class CellIndex {
 public:
  // For each cell the rows that answer for it, most wanted first (CellLists).
  using Lists = std::vector<std::vector<int64_t>>;

  // parameters with a code and at least one partition; anchors and gallery are theirs. Some of the
  // items serve as the queries that are known, more than a sample needs of none. Null when
  // `stopped` became true meanwhile. O(sample n d) time; beside ids, labels and payloads the
  // codes and 12 bytes a partition and row.
  static std::shared_ptr<const CellIndex> Make(const PublicParameters& parameters,
                                               const Anchors& anchors, Gallery gallery,
                                               const std::atomic<bool>& stopped);

  int64_t items() const { return static_cast<int64_t>(gallery_.ids.size()); }
  // Of the gallery.
  uint64_t items_version() const { return gallery_.version; }

  // The lists of a partition for searchers who choose with this epsilon, `length` rows each (0 to
  // items()). Kept for the next who asks for the same; the first waits, O(cells items).
  std::shared_ptr<const Lists> ListsFor(size_t partition, double epsilon, int64_t length) const;

  const std::string& IdOf(int64_t row) const { return gallery_.ids[static_cast<size_t>(row)]; }
  int32_t LabelOf(int64_t row) const { return gallery_.labels[static_cast<size_t>(row)]; }
  const std::string& PayloadOf(int64_t row) const {
    return gallery_.payloads[static_cast<size_t>(row)];
  }
  absl::string_view CodeOf(int64_t row) const {
    return absl::string_view(codes_).substr(static_cast<size_t>(row) * code_bytes_, code_bytes_);
  }
  // Nothing when the gallery has no such item.
  std::optional<int64_t> RowOf(const std::string& id) const;

 private:
  struct Partition {
    ItemCells lie;
    Demand demand;
  };
  struct Kept {
    size_t partition;
    double epsilon;
    int64_t length;
    std::shared_ptr<const Lists> lists;
  };

  CellIndex(Gallery gallery, std::vector<Partition> partitions, std::string codes);

  Gallery gallery_;  // without features
  std::vector<Partition> partitions_;
  std::string codes_;
  size_t code_bytes_;
  mutable std::mutex mutex_;        // guards what follows
  mutable std::vector<Kept> kept_;  // the last that were asked for, latest last
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_CELLS_CELL_INDEX_H_
