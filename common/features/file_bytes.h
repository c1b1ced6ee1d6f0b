// Reading of a whole input file, with errors that begin with its path.
#ifndef PRIVATEMAIL_COMMON_FEATURES_FILE_BYTES_H_
#define PRIVATEMAIL_COMMON_FEATURES_FILE_BYTES_H_

#include <string>

#include "absl/status/statusor.h"

namespace privatemail {

// The bytes of a regular, non-empty file.
// - INVALID_ARGUMENT: no such file, or a folder, a device or empty
// - PERMISSION_DENIED, DATA_LOSS: it cannot be opened, or ends early
absl::StatusOr<std::string> ReadFileBytes(const std::string& path);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_FILE_BYTES_H_
