// Which cell each item of a gallery lies in.
#ifndef PRIVATEMAIL_COMMON_INDEX_FIND_ITEM_CELLS_H_
#define PRIVATEMAIL_COMMON_INDEX_FIND_ITEM_CELLS_H_

#include <atomic>

#include "common/base/matrix.h"
#include "common/cells/cell_lists.h"

namespace privatemail {

// items: n x d; centroids: cells x d. When `stopped` becomes true meanwhile (null: never), it ends
// early and is good for nothing.
ItemCells FindItemCells(const FloatMatrix& items, const FloatMatrix& centroids,
                        const std::atomic<bool>* stopped = nullptr);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_INDEX_FIND_ITEM_CELLS_H_
