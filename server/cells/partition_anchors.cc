#include "server/cells/partition_anchors.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/index/k_means.h"

namespace privatemail::server {
namespace {

absl::StatusOr<CellPartition> Partition(const FloatMatrix& anchors, int64_t cells) {
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("cells", cells, 2, std::min<int64_t>(anchors.rows(), kMaxCells)));
  CellPartition partition{.cells = cells, .cell_of_anchor = {}};
  const std::vector<int64_t> nearest = NearestCentroids(anchors, KMeans(anchors, cells, {}));
  partition.cell_of_anchor.assign(nearest.begin(), nearest.end());
  const std::set<int64_t> used(nearest.begin(), nearest.end());
  if (std::ssize(used) == cells) return partition;
  const std::string left =
      absl::StrCat("a k-means of the ", anchors.rows(), " anchors into ", cells, " cells leaves ",
                   cells - std::ssize(used), " of them without an anchor");
  return absl::InvalidArgumentError(
      cells == 2
          ? absl::StrCat("cells cannot be made of anchors that all have one direction: ", left)
          : absl::StrCat("cells must be fewer than ", cells, ": ", left));
}

}  // namespace

absl::StatusOr<std::vector<CellPartition>> PartitionAnchors(const FloatMatrix& unit_anchors,
                                                            const std::vector<int64_t>& counts) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("number of cell partitions", std::ssize(counts), 0,
                                         static_cast<int64_t>(kMaxCellPartitions)));
  std::vector<CellPartition> partitions;
  for (const int64_t cells : counts) {
    PM_ASSIGN_OR_RETURN(CellPartition partition, Partition(unit_anchors, cells));
    partitions.push_back(std::move(partition));
  }
  return partitions;
}

}  // namespace privatemail::server
