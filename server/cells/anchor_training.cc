#include "server/cells/anchor_training.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/index/k_means.h"

namespace privatemail::server {
namespace {

constexpr Eigen::Index kRowsBetweenChecks = 4096;  // for a cancelled creation

absl::StatusOr<std::vector<int64_t>> NearestCentroidsOf(const FloatMatrix& anchors,
                                                        const FloatMatrix& centroids,
                                                        const CancelledFunction& cancelled) {
  std::vector<int64_t> nearest;
  for (Eigen::Index first = 0; first < anchors.rows(); first += kRowsBetweenChecks) {
    PM_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
    const Eigen::Index count = std::min(kRowsBetweenChecks, anchors.rows() - first);
    const std::vector<int64_t> part = NearestCentroids(anchors.middleRows(first, count), centroids);
    nearest.insert(nearest.end(), part.begin(), part.end());
  }
  return nearest;
}

absl::StatusOr<CellPartition> Partition(const FloatMatrix& anchors, int64_t cells,
                                        const CancelledFunction& cancelled) {
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("cells", cells, 2, std::min<int64_t>(anchors.rows(), kMaxCells)));
  CellPartition partition{.cells = cells, .cell_of_anchor = {}};
  const FloatMatrix centroids = KMeans(anchors, cells, {}, cancelled);
  PM_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> nearest,
                      NearestCentroidsOf(anchors, centroids, cancelled));
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

// With fewer, centroids overfit the anchors and other vectors have a larger error than the stated
// one.
constexpr int64_t kAnchorsPerCentroid = 39;

// With few anchors, twice the parts of 16 centroids lose nearly as little of other vectors, and the
// error measured on the anchors is close to theirs.
int64_t CentroidsFor(int64_t anchors) { return anchors >= 256 * kAnchorsPerCentroid ? 256 : 16; }

absl::Status CheckTrainable(const FloatMatrix& anchors, CellCode code, int64_t parts) {
  const std::string name = absl::StrCat("cell_code pq", CodeBytes(code, anchors.cols()));
  constexpr int64_t kMinAnchors = 16 * kAnchorsPerCentroid;
  if (anchors.rows() < kMinAnchors) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " must have at least ", kMinAnchors, " anchors to be trained on, but there are ",
        anchors.rows(), "; float16, scalar8 and none take any number"));
  }
  if (anchors.cols() >= parts) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must have at least ", parts, " dimensions with ", anchors.rows(),
                   " anchors, but there are ", anchors.cols(), "; take a shorter code"));
}

absl::StatusOr<double> MeanSquaredError(const ProductCodebook& codebook, const FloatMatrix& rows,
                                        const CancelledFunction& cancelled) {
  double sum = 0;
  for (Eigen::Index row = 0; row < rows.rows(); ++row) {
    if (row % kRowsBetweenChecks == 0) PM_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
    std::string code;
    codebook.Append(rows.row(row), &code);
    sum += (codebook.Decode(code).row(0) - rows.row(row)).cast<double>().squaredNorm();
  }
  return sum / static_cast<double>(rows.rows());
}

}  // namespace

absl::StatusOr<std::vector<CellPartition>> PartitionAnchors(const FloatMatrix& unit_anchors,
                                                            const std::vector<int64_t>& counts,
                                                            const CancelledFunction& cancelled) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("number of cell partitions", std::ssize(counts), 0,
                                         static_cast<int64_t>(kMaxCellPartitions)));
  std::vector<CellPartition> partitions;
  for (const int64_t cells : counts) {
    PM_ASSIGN_OR_RETURN(CellPartition partition, Partition(unit_anchors, cells, cancelled));
    partitions.push_back(std::move(partition));
  }
  return partitions;
}

absl::StatusOr<ProductCodebook> TrainCodebook(const FloatMatrix& unit_anchors, CellCode code,
                                              const CancelledFunction& cancelled) {
  const int64_t centroids = CentroidsFor(unit_anchors.rows());
  ProductCodebook codebook;
  codebook.parts = PartsOf(code, centroids);
  PM_RETURN_IF_ERROR(CheckTrainable(unit_anchors, code, codebook.parts));
  codebook.centroids.resize(unit_anchors.cols(), centroids);
  for (int64_t part = 0; part < codebook.parts; ++part) {
    const int64_t begin = codebook.Begin(part);
    const int64_t count = codebook.Begin(part + 1) - begin;
    const FloatMatrix of_part = unit_anchors.middleCols(begin, count);
    codebook.centroids.middleRows(begin, count) =
        KMeans(of_part, centroids, {}, cancelled).transpose();
    PM_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
  }
  PM_ASSIGN_OR_RETURN(codebook.relative_squared_error,
                      MeanSquaredError(codebook, unit_anchors, cancelled));
  return codebook;
}

}  // namespace privatemail::server
