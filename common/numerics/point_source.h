// Points, read in blocks: what an affinity needs of them, wherever they are kept.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_POINT_SOURCE_H_
#define PRIVATEMAIL_COMMON_NUMERICS_POINT_SOURCE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/matrix.h"

namespace privatemail {

// n points of d coordinates. Immutable, and Read is thread-safe.
class PointSource {
 public:
  virtual ~PointSource() = default;

  virtual Eigen::Index rows() const = 0;
  virtual Eigen::Index cols() const = 0;

  // Fills `block` (any number of rows x cols()) with the rows from `first` on, all of which exist.
  // The same rows are the same bits in every call. UNAVAILABLE or DATA_LOSS: they cannot be read.
  virtual absl::Status Read(Eigen::Index first, Matrix* block) const = 0;
};

// The rows of a matrix.
class MatrixPoints : public PointSource {
 public:
  explicit MatrixPoints(Matrix points) : points_(std::move(points)) {}

  Eigen::Index rows() const override { return points_.rows(); }
  Eigen::Index cols() const override { return points_.cols(); }
  absl::Status Read(Eigen::Index first, Matrix* block) const override;

 private:
  Matrix points_;
};

// Rows in single precision, each scaled to length 1 in double: a collection's items and, behind
// them, its anchors. Refers to the anchors, which must outlive it, and keeps one double a row.
class UnitPoints : public PointSource {
 public:
  // INVALID_ARGUMENT, naming `items` or `anchors` and the row: one that is zero or not finite.
  // Both have the same number of columns.
  static absl::StatusOr<UnitPoints> Create(FloatMatrix items, const FloatMatrix& anchors);

  Eigen::Index rows() const override { return inverse_length_.size(); }
  Eigen::Index cols() const override { return anchors_->cols(); }
  absl::Status Read(Eigen::Index first, Matrix* block) const override;

 private:
  UnitPoints(FloatMatrix items, const FloatMatrix& anchors, Vector inverse_length)
      : items_(std::move(items)), anchors_(&anchors), inverse_length_(std::move(inverse_length)) {}

  FloatMatrix items_;
  const FloatMatrix* anchors_;
  Vector inverse_length_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_POINT_SOURCE_H_
