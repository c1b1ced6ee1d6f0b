#include "client/schemes/anchor_classes.h"

#include "absl/strings/str_cat.h"

namespace privatemail::client {

absl::Status CheckLabels(absl::string_view field, const PublicParameters& parameters,
                         const std::vector<int32_t>& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (const auto slot = parameters.SlotOf(labels[i]); !slot.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, " row ", i, ": ", slot.status().message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<int64_t>>> RowsBySlot(absl::string_view field,
                                                             const PublicParameters& parameters,
                                                             const std::vector<int32_t>& labels) {
  std::vector<std::vector<int64_t>> rows(parameters.slot_labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    rows[static_cast<size_t>(*parameters.SlotOf(labels[i]))].push_back(static_cast<int64_t>(i));
  }
  for (size_t slot = 0; slot < rows.size(); ++slot) {
    if (rows[slot].empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, " must hold at least one vector of every class, but hold none of ",
                       parameters.ClassName(static_cast<int64_t>(slot))));
    }
  }
  return rows;
}

Matrix ClassMeans(const PublicParameters& parameters, const Matrix& unit_anchors,
                  const std::vector<int32_t>& labels) {
  Matrix means =
      Matrix::Zero(static_cast<Eigen::Index>(parameters.slot_labels.size()), unit_anchors.cols());
  for (Eigen::Index i = 0; i < unit_anchors.rows(); ++i) {
    means.row(*parameters.SlotOf(labels[static_cast<size_t>(i)])) += unit_anchors.row(i);
  }
  means.rowwise().normalize();  // a mean of length zero stays zero: no direction is nearest to it
  return means;
}

int64_t NearestSlot(const Matrix& class_means, const RowVector& unit_row) {
  Eigen::Index nearest = 0;
  (class_means * unit_row.transpose()).maxCoeff(&nearest);
  return nearest;
}

}  // namespace privatemail::client
