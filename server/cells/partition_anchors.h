// Public anchors cut into cells.
#ifndef PRIVATEMAIL_SERVER_CELLS_PARTITION_ANCHORS_H_
#define PRIVATEMAIL_SERVER_CELLS_PARTITION_ANCHORS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/cells/cell_partition.h"

namespace privatemail::server {

// A partition for each of the counts: a k-means of the anchors (rows of length 1, n x d) into so
// many cells. Equal anchors give equal partitions. INVALID_ARGUMENT: more than kMaxCellPartitions
// counts, one that is not 2 to n and to kMaxCells, or one that leaves a cell without an anchor, as
// happens where anchors are equal.
absl::StatusOr<std::vector<CellPartition>> PartitionAnchors(const FloatMatrix& unit_anchors,
                                                            const std::vector<int64_t>& counts);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CELLS_PARTITION_ANCHORS_H_
