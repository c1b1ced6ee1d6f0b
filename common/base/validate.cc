#include "common/base/validate.h"

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

absl::Status Expect(bool holds, absl::string_view field, absl::string_view expected, double value) {
  return holds ? absl::OkStatus() : FieldError(field, expected, absl::StrCat(value));
}

// Length of a row, computed without overflow or underflow.
template <typename Row>
absl::StatusOr<double> UsableLength(absl::string_view field, const Row& row) {
  double largest = 0;
  for (Eigen::Index column = 0; column < row.size(); ++column) {
    const double value = row[column];
    if (!std::isfinite(value)) {
      return absl::InvalidArgumentError(absl::StrCat(field, ": value in column ", column, " is ",
                                                     value, ", expected finite values"));
    }
    largest = std::max(largest, std::abs(value));
  }
  if (!(largest > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, ": all ", row.size(), " values are zero, expected a vector with a direction"));
  }
  if (!(largest >= std::numeric_limits<double>::min())) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": the largest value is ", largest,
                                                   ", too small to scale to length 1"));
  }
  const double sum = (row.template cast<double>() / largest).squaredNorm();
  return largest * std::sqrt(sum);
}

template <typename Rows>
absl::StatusOr<Matrix> ScaledRows(absl::string_view field, const Rows& rows) {
  Matrix unit(rows.rows(), rows.cols());
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    PM_ASSIGN_OR_RETURN(const double length,
                        UsableLength(absl::StrCat(field, " row ", i), rows.row(i)));
    unit.row(i) = rows.row(i).template cast<double>() / length;
  }
  return unit;
}

}  // namespace

absl::Status CheckNotEmpty(absl::string_view field, absl::string_view value) {
  if (!value.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " must be given, but is empty"));
}

absl::Status CheckFinitePositive(absl::string_view field, double value) {
  return Expect(value > 0 && std::isfinite(value), field, "finite and positive", value);
}

absl::Status CheckFiniteNonNegative(absl::string_view field, double value) {
  return Expect(value >= 0 && std::isfinite(value), field, "finite and not negative", value);
}

absl::Status CheckOpenUnitInterval(absl::string_view field, double value) {
  return Expect(value > 0 && value < 1, field, "strictly between 0 and 1", value);
}

absl::Status CheckBetween(absl::string_view field, double value, double lowest, double highest) {
  return Expect(value >= lowest && value <= highest, field,
                absl::StrCat("between ", lowest, " and ", highest), value);
}

absl::Status CheckIntegerBetween(absl::string_view field, int64_t value, int64_t lowest,
                                 int64_t highest) {
  if (value >= lowest && value <= highest) return absl::OkStatus();
  const std::string expected =
      lowest == highest ? absl::StrCat(lowest) : absl::StrCat("between ", lowest, " and ", highest);
  return FieldError(field, expected, absl::StrCat(value));
}

absl::Status CheckColumns(absl::string_view field, int64_t expected, int64_t actual) {
  if (expected == actual) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " has the wrong dimension: expected ", expected, ", got ", actual));
}

absl::StatusOr<Matrix> UnitRows(absl::string_view field, const FloatMatrix& rows) {
  return ScaledRows(field, rows);
}

absl::StatusOr<Matrix> UnitRows(absl::string_view field, const Matrix& rows) {
  return ScaledRows(field, rows);
}

absl::Status InverseLengths(absl::string_view field, const FloatMatrix& rows,
                            Eigen::Ref<Vector> inverse_length) {
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    const auto length = UsableLength(field, rows.row(i));
    // Names of rows are made only on failure: formatting a million costs more than the lengths.
    if (!length.ok()) return UsableLength(absl::StrCat(field, " row ", i), rows.row(i)).status();
    inverse_length[i] = 1 / *length;
  }
  return absl::OkStatus();
}

absl::Status CheckUnitScalable(absl::string_view field, const float* values, int64_t count) {
  return UsableLength(field, Eigen::Map<const Eigen::RowVectorXf>(values, count)).status();
}

}  // namespace privatemail
