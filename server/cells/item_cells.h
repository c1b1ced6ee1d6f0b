// The cell that each item lies in.
#ifndef PRIVATEMAIL_SERVER_CELLS_ITEM_CELLS_H_
#define PRIVATEMAIL_SERVER_CELLS_ITEM_CELLS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/base/matrix.h"

namespace privatemail {

// For each item the cell whose centroid is nearest to it, and how near that is.
struct ItemCells {
  std::vector<int64_t> cells;
  std::vector<float> squared_distances;
};

// items: n x d; centroids: cells x d. When `stopped` becomes true meanwhile (null: never), it ends
// early and is good for nothing.
ItemCells FindItemCells(const FloatMatrix& items, const FloatMatrix& centroids,
                        const std::atomic<bool>* stopped = nullptr);

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_CELLS_ITEM_CELLS_H_
