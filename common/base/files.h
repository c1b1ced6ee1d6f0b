// Reading and atomic writing of small files.
#ifndef PRIVATEMAIL_COMMON_BASE_FILES_H_
#define PRIVATEMAIL_COMMON_BASE_FILES_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail {

// Limit for configuration files, certificates and keys.
inline constexpr size_t kSmallFileBytes = size_t{16} << 20;

// The content of a regular file of at most `max_bytes`. Never blocks on a pipe or device.
// FAILED_PRECONDITION ("cannot read --tls-cert /x/y.crt: No such file or directory"): the file is
// missing, unreadable, not regular or too large.
absl::StatusOr<std::string> ReadFile(absl::string_view what, const std::string& path,
                                     size_t max_bytes = kSmallFileBytes);

// The bytes of a regular, non-empty input file; messages begin with its path.
// - INVALID_ARGUMENT: no such file, or a folder, a device, empty or larger than `max_bytes`
// - PERMISSION_DENIED: it cannot be opened or read
absl::StatusOr<std::string> ReadFileBytes(const std::string& path, size_t max_bytes = SIZE_MAX);

// Writes a temporary file, syncs and renames it: `path` always holds the old or the new content,
// with permissions no wider than `mode`.
// - RESOURCE_EXHAUSTED: no space left; names the file
// - FAILED_PRECONDITION: any other failure
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content, mode_t mode);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_FILES_H_
