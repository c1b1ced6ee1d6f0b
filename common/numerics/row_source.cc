#include "common/numerics/row_source.h"

#include <algorithm>
#include <numeric>

#include "common/base/cancellation.h"
#include "common/base/status_macros.h"

namespace privatemail {

absl::Status MatrixRows::Read(Eigen::Index first, FloatRows block) const {
  block = matrix_.middleRows(first, block.rows());
  return absl::OkStatus();
}

Eigen::Index RowsOfBlock(Eigen::Index cols) {
  constexpr Eigen::Index kBytes = Eigen::Index{32} << 20;
  const Eigen::Index rows = kBytes / (cols * static_cast<Eigen::Index>(sizeof(float)));
  // FAISS multiplies 4,096 rows by 1,024.
  const Eigen::Index multiple = rows >= 4096 ? 4096 : 1024;
  return std::max<Eigen::Index>(1, rows / multiple) * multiple;
}

absl::Status VisitBlocks(
    const RowSource& source,
    absl::FunctionRef<absl::Status(Eigen::Index first, const FloatMatrix& block)> visit) {
  if (source.rows() == 0) return absl::OkStatus();
  const Eigen::Index rows = RowsOfBlock(source.cols());
  FloatMatrix block;
  for (Eigen::Index first = 0; first < source.rows(); first += rows) {
    block.resize(std::min(rows, source.rows() - first), source.cols());
    PM_RETURN_IF_ERROR(source.Read(first, block));
    PM_RETURN_IF_ERROR(visit(first, block));
  }
  return absl::OkStatus();
}

absl::StatusOr<FloatMatrix> ReadRows(const RowSource& source,
                                     const std::vector<Eigen::Index>& numbers,
                                     const std::atomic<bool>* stopped) {
  // A file is read forwards.
  std::vector<Eigen::Index> ascending(numbers.size());
  std::iota(ascending.begin(), ascending.end(), 0);
  const auto number = [&](Eigen::Index i) { return numbers[static_cast<size_t>(i)]; };
  std::sort(ascending.begin(), ascending.end(),
            [&](Eigen::Index a, Eigen::Index b) { return number(a) < number(b); });
  FloatMatrix rows(std::ssize(numbers), source.cols());
  for (const Eigen::Index i : ascending) {
    if (stopped != nullptr) PM_RETURN_IF_ERROR(CheckNotStopped(*stopped));
    PM_RETURN_IF_ERROR(source.Read(number(i), rows.middleRows(i, 1)));
  }
  return rows;
}

}  // namespace privatemail
