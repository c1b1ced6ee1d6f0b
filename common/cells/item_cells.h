// The cell that each item lies in.
#ifndef PRIVATEMAIL_COMMON_CELLS_ITEM_CELLS_H_
#define PRIVATEMAIL_COMMON_CELLS_ITEM_CELLS_H_

#include <cstdint>
#include <vector>

namespace privatemail {

// For each item the cell whose centroid is nearest to it, and how near that is.
struct ItemCells {
  std::vector<int64_t> cells;
  std::vector<float> squared_distances;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_ITEM_CELLS_H_
