#include "common/wire/codec.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail {

void ToProto(const FloatMatrix& matrix, v1::Matrix* proto) {
  proto->set_rows(static_cast<uint32_t>(matrix.rows()));
  proto->set_cols(static_cast<uint32_t>(matrix.cols()));
  proto->mutable_values()->Assign(matrix.data(), matrix.data() + matrix.size());
}

void ToProto(const Matrix& matrix, v1::Matrix* proto) {
  ToProto(FloatMatrix(matrix.cast<float>()), proto);
}

absl::StatusOr<FloatView> ViewOf(absl::string_view field, const v1::Matrix& proto) {
  const auto rows = static_cast<int64_t>(proto.rows());
  const auto cols = static_cast<int64_t>(proto.cols());
  if (rows == 0 || cols == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " must have rows and columns, but is ", rows, " x ", cols));
  }
  if (rows > kMaxMatrixValues / cols) {
    return absl::ResourceExhaustedError(absl::StrCat(field, " is ", rows, " x ", cols,
                                                     ", more than the limit of ", kMaxMatrixValues,
                                                     " values"));
  }
  if (proto.values_size() != rows * cols) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, " has ", rows, " rows of ", cols, " columns but ", proto.values_size(), " values"));
  }
  const FloatView matrix(proto.values().data(), rows, cols);
  if (!matrix.allFinite()) {
    for (int64_t i = 0; i < rows * cols; ++i) {
      const float value = proto.values(static_cast<int>(i));
      if (value - value != 0) {
        return absl::InvalidArgumentError(absl::StrCat(field, " row ", i / cols,
                                                       ": value in column ", i % cols, " is ",
                                                       value, ", expected finite values"));
      }
    }
  }
  return matrix;
}

absl::StatusOr<FloatMatrix> FromProto(absl::string_view field, const v1::Matrix& proto) {
  PM_ASSIGN_OR_RETURN(const FloatView view, ViewOf(field, proto));
  return FloatMatrix(view);
}

}  // namespace privatemail
