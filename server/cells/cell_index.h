// What answers for the cells of a collection.
#ifndef PRIVATEMAIL_SERVER_CELLS_CELL_INDEX_H_
#define PRIVATEMAIL_SERVER_CELLS_CELL_INDEX_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/cells/demand.h"
#include "common/cells/item_cells.h"
#include "common/protocol/public_parameters.h"
#include "server/cells/kept_lists.h"
#include "server/store/types.h"

namespace privatemail {

// One gallery, ready to answer for the cells of all partitions of its collection's anchors. Knows
// nothing of a searcher but what is asked for. Immutable but for what it keeps; thread-safe.
class CellIndex {
 public:
  // parameters with a code and at least one partition; anchors and gallery are theirs. Some of the
  // items serve as the queries that are known, more than a sample needs of none. Null when
  // `stopped` became true meanwhile. O(sample n d) time; beside ids, labels and payloads the codes,
  // for each partition 16 bytes a row and as many for each pair of a cell and an item that its
  // known queries want, and the lists that are kept.
  static std::shared_ptr<const CellIndex> Make(const PublicParameters& parameters,
                                               const Anchors& anchors, Gallery gallery,
                                               const std::atomic<bool>& stopped);

  int64_t items() const { return static_cast<int64_t>(gallery_.ids.size()); }
  // Of the gallery.
  uint64_t items_version() const { return gallery_.version; }

  // For each of the cells of a partition the rows that answer for it, most wanted first (CellList
  // with ListedEpsilon): `length` of them (0 to items()) and perhaps more, which are not meant.
  // Kept for whoever asks for the same; otherwise made at low priority, one list at a time, O(n)
  // each. CANCELLED: `cancelled` became true meanwhile.
  absl::StatusOr<std::vector<KeptLists::List>> ListsFor(size_t partition,
                                                        absl::Span<const uint32_t> cells,
                                                        double epsilon, int64_t length,
                                                        absl::FunctionRef<bool()> cancelled) const;

  // Bytes that lists of this length take, and making one.
  int64_t MemoryOfLists(int64_t lists, int64_t length) const;

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

  CellIndex(Gallery gallery, std::vector<Partition> partitions, std::string codes);

  Gallery gallery_;  // without features
  std::vector<Partition> partitions_;
  std::string codes_;
  size_t code_bytes_;
  mutable KeptLists kept_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_CELLS_CELL_INDEX_H_
