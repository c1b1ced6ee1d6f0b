// The anchors cut into cells, of which a searcher asks for some.
#ifndef PRIVATEMAIL_COMMON_CELLS_CELL_PARTITION_H_
#define PRIVATEMAIL_COMMON_CELLS_CELL_PARTITION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/matrix.h"

namespace privatemail {

inline constexpr size_t kMaxCellPartitions = 8;
// Of one partition: what a server has to compute to make it grows with them.
inline constexpr int64_t kMaxCells = 4096;

// Public. A cell is a set of anchors, so that each side has its centroid in a feature space of its
// own (PRIVACY.md section 5).
struct CellPartition {
  int64_t cells = 0;                    // K
  std::vector<int32_t> cell_of_anchor;  // one an anchor, in [0, K)
};

// INVALID_ARGUMENT naming the partition: too many of them, other than 2 to `anchors` or kMaxCells
// cells, not one cell for each anchor, a cell without an anchor.
absl::Status Validate(const std::vector<CellPartition>& partitions, int64_t anchors);

// The mean of each cell's anchors: cells x d. unit_anchors: rows of length 1 (n x d) in the
// published order; the partition is valid for them.
Matrix CellCentroids(const CellPartition& partition, const Matrix& unit_anchors);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_CELLS_CELL_PARTITION_H_
