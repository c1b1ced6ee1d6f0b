// Parsers of the formats of vector_file.h, which documents names and errors. They take the whole
// file and return INVALID_ARGUMENT with a message that begins with `name`.
#ifndef PRIVATEMAIL_COMMON_FEATURES_VECTOR_FORMATS_H_
#define PRIVATEMAIL_COMMON_FEATURES_VECTOR_FORMATS_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/matrix.h"

namespace privatemail {

absl::StatusOr<FloatMatrix> ParseNpyVectors(absl::string_view name, absl::string_view bytes);
absl::StatusOr<FloatMatrix> ParseCsvVectors(absl::string_view name, absl::string_view bytes);

absl::StatusOr<std::vector<int32_t>> ParseNpyLabels(absl::string_view name,
                                                    absl::string_view bytes);
absl::StatusOr<std::vector<int32_t>> ParseCsvLabels(absl::string_view name,
                                                    absl::string_view bytes);

// INVALID_ARGUMENT with a message that begins with the file's name.
template <typename... Parts>
absl::Status BadFile(absl::string_view name, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", parts...));
}

// The value at `offset`, perhaps unaligned. The machine is little-endian like the formats.
template <typename T>
T Load(absl::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_VECTOR_FORMATS_H_
