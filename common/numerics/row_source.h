// Feature rows in single precision that are read in blocks.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_ROW_SOURCE_H_
#define PRIVATEMAIL_COMMON_NUMERICS_ROW_SOURCE_H_

#include <atomic>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/matrix.h"

namespace privatemail {

// Whole rows of a matrix, one after the other in memory.
using FloatRows = Eigen::Ref<FloatMatrix>;

// n rows of d floats, in memory or in a file. Immutable; reading is thread-safe.
class RowSource {
 public:
  virtual ~RowSource() = default;

  virtual Eigen::Index rows() const = 0;
  virtual Eigen::Index cols() const = 0;

  // Fills `block` (any number of rows x cols()) with existing rows from `first` on. UNAVAILABLE or
  // DATA_LOSS: they cannot be read.
  virtual absl::Status Read(Eigen::Index first, FloatRows block) const = 0;
};

// The rows of a matrix.
class MatrixRows : public RowSource {
 public:
  explicit MatrixRows(FloatMatrix matrix) : matrix_(std::move(matrix)) {}

  Eigen::Index rows() const override { return matrix_.rows(); }
  Eigen::Index cols() const override { return matrix_.cols(); }
  absl::Status Read(Eigen::Index first, FloatRows block) const override;

 private:
  const FloatMatrix matrix_;
};

// Rows of about 32 MiB, at least 1,024. Fewer only at the end, so that matrix products of rows and
// their rounding depend on the rows alone.
Eigen::Index RowsOfBlock(Eigen::Index cols);

// Reads all rows in blocks of RowsOfBlock rows, in order. Errors of Read and `visit`.
absl::Status VisitBlocks(
    const RowSource& source,
    absl::FunctionRef<absl::Status(Eigen::Index first, const FloatMatrix& block)> visit);

// The rows of these numbers, in their order. Errors of Read; CANCELLED: `stopped` (null: never)
// became true.
absl::StatusOr<FloatMatrix> ReadRows(const RowSource& source,
                                     const std::vector<Eigen::Index>& numbers,
                                     const std::atomic<bool>* stopped = nullptr);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_ROW_SOURCE_H_
