// Partitions of the anchors into cells, which are the unit of private retrieval.
#ifndef PRIVATEMAIL_COMMON_CELLS_CELL_PARTITION_H_
#define PRIVATEMAIL_COMMON_CELLS_CELL_PARTITION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/matrix.h"

namespace privatemail {

inline constexpr size_t kMaxCellPartitions = 8;
// Maximum for one partition; the server's work to build it grows with the number of cells.
inline constexpr int64_t kMaxCells = 4096;

// Public. A cell is a set of anchors, so each side can compute its centroid in its own feature
// space (PRIVACY.md section 5).
struct CellPartition {
  int64_t cells = 0;                    // K
  std::vector<int32_t> cell_of_anchor;  // one an anchor, in [0, K)
};

// INVALID_ARGUMENT naming the partition:
// - more than kMaxCellPartitions partitions
// - fewer than 2 cells, or more than min(anchors, kMaxCells)
// - not one cell for each anchor, or a cell without an anchor
absl::Status Validate(const std::vector<CellPartition>& partitions, int64_t anchors);

// The mean of each cell's anchors: cells x d. unit_anchors: n x d, rows of length 1 in the
// published order. Requires a valid partition.
Matrix CellCentroids(const CellPartition& partition, const Matrix& unit_anchors);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_CELL_PARTITION_H_
