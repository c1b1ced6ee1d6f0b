// Whole files in memory, with errors that name the file.
#ifndef PRIVATEMAIL_COMMON_FEATURES_FILE_BYTES_H_
#define PRIVATEMAIL_COMMON_FEATURES_FILE_BYTES_H_

#include <string>

#include "absl/status/statusor.h"

namespace privatemail {

// The bytes of a regular file of at least one byte. INVALID_ARGUMENT: there is no such file, or it
// is a folder, a device or empty. PERMISSION_DENIED or DATA_LOSS: it exists but cannot be opened,
// or ends early. Every message begins with the path.
absl::StatusOr<std::string> ReadFileBytes(const std::string& path);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_FEATURES_FILE_BYTES_H_
