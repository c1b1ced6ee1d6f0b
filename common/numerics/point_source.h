// Points that are read in blocks.
#ifndef PRIVATEMAIL_COMMON_NUMERICS_POINT_SOURCE_H_
#define PRIVATEMAIL_COMMON_NUMERICS_POINT_SOURCE_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {

// n points of d coordinates, in memory or not. Immutable; Read is thread-safe.
class PointSource {
 public:
  virtual ~PointSource() = default;

  virtual Eigen::Index rows() const = 0;
  virtual Eigen::Index cols() const = 0;

  // Fills `block` (any number of rows x cols()) with existing rows from `first` on. Every call
  // returns the same bits for a row. UNAVAILABLE or DATA_LOSS: the rows cannot be read.
  virtual absl::Status Read(Eigen::Index first, Matrix* block) const = 0;
};

// The rows of a matrix.
class MatrixPoints : public PointSource {
 public:
  explicit MatrixPoints(Matrix points) : points_(std::move(points)) {}

  Eigen::Index rows() const override { return points_.rows(); }
  Eigen::Index cols() const override { return points_.cols(); }
  absl::Status Read(Eigen::Index first, Matrix* block) const override {
    *block = points_.middleRows(first, block->rows());
    return absl::OkStatus();
  }

 private:
  Matrix points_;
};

// A collection's items followed by its anchors, each scaled to length 1 in double when read.
// Memory beside the matrices: one double a row. The anchors must outlive it.
class UnitPoints : public PointSource {
 public:
  // Both matrices have the same number of columns. INVALID_ARGUMENT naming `items` or `anchors` and
  // the row: a row is zero or not finite.
  static absl::StatusOr<UnitPoints> Create(FloatMatrix items, const FloatMatrix& anchors) {
    Vector inverse_length(items.rows() + anchors.rows());
    PM_RETURN_IF_ERROR(InverseLengths("items", items, inverse_length.head(items.rows())));
    PM_RETURN_IF_ERROR(InverseLengths("anchors", anchors, inverse_length.tail(anchors.rows())));
    return UnitPoints(std::move(items), anchors, std::move(inverse_length));
  }

  Eigen::Index rows() const override { return inverse_length_.size(); }
  Eigen::Index cols() const override { return anchors_->cols(); }
  absl::Status Read(Eigen::Index first, Matrix* block) const override {
    for (Eigen::Index i = 0; i < block->rows(); ++i) {
      const Eigen::Index row = first + i;
      const bool is_item = row < items_.rows();
      const auto source = is_item ? items_.row(row) : anchors_->row(row - items_.rows());
      block->row(i) = inverse_length_[row] * source.cast<double>();
    }
    return absl::OkStatus();
  }

 private:
  UnitPoints(FloatMatrix items, const FloatMatrix& anchors, Vector inverse_length)
      : items_(std::move(items)), anchors_(&anchors), inverse_length_(std::move(inverse_length)) {}

  FloatMatrix items_;
  const FloatMatrix* anchors_;
  Vector inverse_length_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_NUMERICS_POINT_SOURCE_H_
