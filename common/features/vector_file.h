// Reading of feature vectors and labels as .npy, .fvecs, .ivecs, .csv and .txt. The
// format follows from the extension, in any case. Pure functions, thread-safe.
//
// No packaged library reads these formats. The parsers expect hostile input: shapes are compared
// with the size of the file before allocation, so memory is a small multiple of that size.
//
// - .npy: numpy's format, versions 1 to 3, C order, little-endian. Vectors: 2-D float32 or float64.
//   Labels: 1-D or n x 1, integers of 8 to 64 bits.
// - .fvecs: each row is the number of columns as int32, then that many float32; little-endian.
// - .ivecs: as .fvecs with int32 values. Labels: one column. Vectors: values become floats.
// - .csv: lines of numbers separated by commas; blanks around numbers and empty lines are ignored.
// - .txt: labels only, one integer a line.
// A first line of names (each begins with a letter, '_' or '"') is skipped in vectors; in labels
// only "label" or "labels" is, since another name may be that of a class.
#ifndef PRIVATEMAIL_COMMON_FEATURES_VECTOR_FILE_H_
#define PRIVATEMAIL_COMMON_FEATURES_VECTOR_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"

namespace privatemail {

// n x d with n, d >= 1. NaN and infinite values are returned unchanged (callers reject single
// rows); a float64 beyond float32 becomes infinite.
// - PERMISSION_DENIED, DATA_LOSS: the file cannot be read
// - INVALID_ARGUMENT: no such file, an extension other than .npy .fvecs .ivecs .csv, or malformed
//   content; the message names the file, the position, what was expected and what came
absl::StatusOr<FloatMatrix> ReadVectors(const std::string& path);

// n >= 1 labels from .npy, .ivecs, .csv or .txt. Errors as ReadVectors; INVALID_ARGUMENT naming the
// row if a value does not fit int32.
absl::StatusOr<std::vector<int32_t>> ReadLabels(const std::string& path);

// For bytes in memory; the extension of `name` selects the format, and messages begin with it.
absl::StatusOr<FloatMatrix> ParseVectors(absl::string_view name, absl::string_view bytes);
absl::StatusOr<std::vector<int32_t>> ParseLabels(absl::string_view name, absl::string_view bytes);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_VECTOR_FILE_H_
