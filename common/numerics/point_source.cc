#include "common/numerics/point_source.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {

absl::Status MatrixPoints::Read(Eigen::Index first, Matrix* block) const {
  *block = points_.middleRows(first, block->rows());
  return absl::OkStatus();
}

absl::StatusOr<UnitPoints> UnitPoints::Create(FloatMatrix items, const FloatMatrix& anchors) {
  Vector inverse_length(items.rows() + anchors.rows());
  PM_RETURN_IF_ERROR(InverseLengths("items", items, inverse_length.head(items.rows())));
  PM_RETURN_IF_ERROR(InverseLengths("anchors", anchors, inverse_length.tail(anchors.rows())));
  return UnitPoints(std::move(items), anchors, std::move(inverse_length));
}

absl::Status UnitPoints::Read(Eigen::Index first, Matrix* block) const {
  const Eigen::Index count = block->rows();
  const Eigen::Index from_items = std::clamp<Eigen::Index>(items_.rows() - first, 0, count);
  if (from_items > 0) {
    block->topRows(from_items) = items_.middleRows(first, from_items).cast<double>();
  }
  if (from_items < count) {
    const Eigen::Index first_anchor = first + from_items - items_.rows();
    block->bottomRows(count - from_items) =
        anchors_->middleRows(first_anchor, count - from_items).cast<double>();
  }
  block->array().colwise() *= inverse_length_.segment(first, count).array();
  return absl::OkStatus();
}

}  // namespace privatemail
