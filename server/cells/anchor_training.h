// Training on public anchors: cell partitions and product codebooks.
#ifndef PRIVATEMAIL_SERVER_CELLS_ANCHOR_TRAINING_H_
#define PRIVATEMAIL_SERVER_CELLS_ANCHOR_TRAINING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/cancellation.h"
#include "common/base/matrix.h"
#include "common/cells/cell_partition.h"
#include "common/cells/product_codebook.h"

namespace privatemail::server {

// One partition per count, by k-means of the anchors (n x d, rows of length 1) into that many
// cells. Deterministic. INVALID_ARGUMENT:
//   - more than kMaxCellPartitions counts;
//   - a count outside 2 .. min(n, kMaxCells);
//   - a count that leaves a cell without an anchor, for example because anchors are equal.
// CANCELLED.
absl::StatusOr<std::vector<CellPartition>> PartitionAnchors(
    const FloatMatrix& unit_anchors, const std::vector<int64_t>& counts,
    const CancelledFunction& cancelled = nullptr);

// The codebook of a product code, by k-means of each part of the anchors (n x d, rows of length 1):
// 256 centroids a part if there are 39 anchors for each (FAISS's rule), otherwise 16 centroids and
// twice as many parts. Deterministic on one machine; others round differently, so it is trained
// once and published. O(n d centroids) time. INVALID_ARGUMENT: fewer than 16 * 39 anchors, or fewer
// dimensions than parts. CANCELLED.
absl::StatusOr<ProductCodebook> TrainCodebook(const FloatMatrix& unit_anchors, CellCode code,
                                              const CancelledFunction& cancelled = nullptr);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CELLS_ANCHOR_TRAINING_H_
