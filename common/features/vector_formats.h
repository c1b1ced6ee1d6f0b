// Parsers of the formats of vector_file.h, which documents names and errors. They take the whole
// file and return INVALID_ARGUMENT with a message that begins with `name`.
#ifndef PRIVATEMAIL_COMMON_FEATURES_VECTOR_FORMATS_H_
#define PRIVATEMAIL_COMMON_FEATURES_VECTOR_FORMATS_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/features/vector_file.h"

namespace privatemail {

absl::StatusOr<VectorFile> ParseNpyVectors(absl::string_view name, absl::string_view bytes);
absl::StatusOr<VectorFile> ParseCsvVectors(absl::string_view name, absl::string_view bytes);

absl::StatusOr<LabelColumn> ParseNpyLabels(absl::string_view name, absl::string_view bytes);
// pickle: what follows the header of an .npy file of objects, one column of so many rows.
absl::StatusOr<LabelColumn> ParseObjectLabels(absl::string_view name, absl::string_view pickle,
                                              int64_t rows);
// has_cells: commas separate cells, as in .csv; otherwise a line is a label. rows: see ReadLabels.
absl::StatusOr<LabelColumn> ParseTextLabels(absl::string_view name, absl::string_view bytes,
                                            bool has_cells, int64_t rows);

// The bytes of the only array with so many dimensions in an .npz file, as an .npy file, which are
// part of `bytes` or `inflated`.
absl::StatusOr<absl::string_view> ArrayOf(absl::string_view name, absl::string_view bytes,
                                          size_t dimensions, std::string* inflated);
// The number of dimensions of an .npy file; nullopt: it is none.
std::optional<size_t> NpyDimensions(absl::string_view bytes);

// The label of a number that is an int32, or kNoLabel of NaN; otherwise nullopt.
std::optional<int32_t> WholeLabel(double number);
// The same, or an error that names the row.
absl::StatusOr<int32_t> LabelOf(absl::string_view name, int64_t row, double number);

// INVALID_ARGUMENT with a message that begins with the file's name.
template <typename... Parts>
absl::Status BadFile(absl::string_view name, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", parts...));
}

// The value at `offset`, perhaps unaligned. The machine is little-endian like most formats.
template <typename T>
T Load(absl::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_VECTOR_FORMATS_H_
