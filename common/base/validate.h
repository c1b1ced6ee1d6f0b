// Checks of numbers from users and peers. NaN fails every check. All failures are INVALID_ARGUMENT
// naming the field, the expectation and the value.
#ifndef PRIVATEMAIL_COMMON_BASE_VALIDATE_H_
#define PRIVATEMAIL_COMMON_BASE_VALIDATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"

namespace privatemail {

// "name must be given, but is empty"
absl::Status CheckNotEmpty(absl::string_view field, absl::string_view value);

// "epsilon must be finite and positive, but is nan"
absl::Status CheckFinitePositive(absl::string_view field, double value);

// "alpha must be finite and not negative, but is -1"
absl::Status CheckFiniteNonNegative(absl::string_view field, double value);

// "delta must be strictly between 0 and 1, but is 1"
absl::Status CheckOpenUnitInterval(absl::string_view field, double value);

// "alpha must be between 0 and 1e+09, but is nan"
absl::Status CheckBetween(absl::string_view field, double value, double lowest, double highest);

// "k must be between 1 and 100, but is 0"
absl::Status CheckIntegerBetween(absl::string_view field, int64_t value, int64_t lowest,
                                 int64_t highest);

// "query has the wrong dimension: expected 64, got 128"
absl::Status CheckColumns(absl::string_view field, int64_t expected, int64_t actual);

// Rows scaled to length 1, in double. INVALID_ARGUMENT: a row is zero or not finite ("anchors row
// 3: value in column 5 is nan, expected finite values").
absl::StatusOr<Matrix> UnitRows(absl::string_view field, const FloatMatrix& rows);
absl::StatusOr<Matrix> UnitRows(absl::string_view field, const Matrix& rows);

// 1 / length of each row. inverse_length: one value a row. Errors as UnitRows.
absl::Status InverseLengths(absl::string_view field, const FloatMatrix& rows,
                            Eigen::Ref<Vector> inverse_length);

// The check of UnitRows for one row of `count` values.
absl::Status CheckUnitScalable(absl::string_view field, const float* values, int64_t count);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_VALIDATE_H_
