#include "common/cells/cell_partition.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {
namespace {

absl::Status ValidateOne(const CellPartition& partition, const std::string& field,
                         int64_t anchors) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween(absl::StrCat(field, ".cells"), partition.cells, 2,
                                         std::min(anchors, kMaxCells)));
  if (std::ssize(partition.cell_of_anchor) != anchors) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ".cell_of_anchor must hold one cell for each of the ", anchors,
                     " anchors, but holds ", partition.cell_of_anchor.size()));
  }
  std::vector<bool> has_anchor(static_cast<size_t>(partition.cells));
  for (const int32_t cell : partition.cell_of_anchor) {
    PM_RETURN_IF_ERROR(
        CheckIntegerBetween(absl::StrCat(field, ".cell_of_anchor"), cell, 0, partition.cells - 1));
    has_anchor[static_cast<size_t>(cell)] = true;
  }
  const auto empty = std::find(has_anchor.begin(), has_anchor.end(), false);
  if (empty == has_anchor.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ".cell_of_anchor must name each of the ",
                                                 partition.cells, " cells, but not cell ",
                                                 empty - has_anchor.begin()));
}

}  // namespace

absl::Status Validate(const std::vector<CellPartition>& partitions, int64_t anchors) {
  if (partitions.size() > kMaxCellPartitions) {
    return InvalidField("cell_partitions", absl::StrCat("must be at most ", kMaxCellPartitions,
                                                        ", but are ", partitions.size()));
  }
  for (size_t i = 0; i < partitions.size(); ++i) {
    PM_RETURN_IF_ERROR(
        ValidateOne(partitions[i], absl::StrCat("cell_partitions[", i, "]"), anchors));
  }
  return absl::OkStatus();
}

Matrix CellCentroids(const CellPartition& partition, const Matrix& unit_anchors) {
  Matrix centroids = Matrix::Zero(partition.cells, unit_anchors.cols());
  Vector counts = Vector::Zero(partition.cells);
  for (Eigen::Index anchor = 0; anchor < unit_anchors.rows(); ++anchor) {
    const int32_t cell = partition.cell_of_anchor[static_cast<size_t>(anchor)];
    centroids.row(cell) += unit_anchors.row(anchor);
    ++counts[cell];
  }
  return centroids.array().colwise() / counts.array();
}

}  // namespace privatemail
