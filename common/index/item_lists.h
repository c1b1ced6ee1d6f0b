// Lists of near items, by k-means of items that are read in blocks.
#ifndef PRIVATEMAIL_COMMON_INDEX_ITEM_LISTS_H_
#define PRIVATEMAIL_COMMON_INDEX_ITEM_LISTS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/numerics/row_source.h"

namespace privatemail {

inline constexpr int64_t kMaxFlatLists = 1024;

// Every item is in one list. None is empty.
struct ItemLists {
  FloatMatrix centroids;              // about as many as were wanted; of few distinct items, fewer
  std::vector<int64_t> list_of_item;  // n
};

// About `lists` lists of n x d items. Beyond kMaxFlatLists in two steps: sqrt(lists) groups, each
// with lists of its own; an item is compared with the lists of the groups around its own. So the
// time of an item does not grow with the number of lists. Errors of RowSource; CANCELLED, within
// seconds: `stopped` became true.
absl::StatusOr<ItemLists> MakeItemLists(const RowSource& items, int64_t lists,
                                        const std::atomic<bool>& stopped);

// For each of `count` values the places where `values` has it.
std::vector<std::vector<Eigen::Index>> PlacesOf(const std::vector<int64_t>& values, int64_t count);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_ITEM_LISTS_H_
