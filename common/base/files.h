// Small files, whole.
#ifndef PRIVATEMAIL_COMMON_BASE_FILES_H_
#define PRIVATEMAIL_COMMON_BASE_FILES_H_

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail {

// More than any configuration, certificate or key takes.
inline constexpr size_t kSmallFileBytes = size_t{16} << 20;

// Waits for nobody and reads no more than `max_bytes`, whatever the path names.
// FAILED_PRECONDITION: "cannot read --tls-cert /x/y.crt: No such file or directory"; a directory, a
// pipe or a device; a larger file.
absl::StatusOr<std::string> ReadFile(absl::string_view what, const std::string& path,
                                     size_t max_bytes = kSmallFileBytes);

// Writes under another name, syncs and renames: at any moment `path` holds the old content or the
// new. The file never has wider permissions than `mode`. RESOURCE_EXHAUSTED naming the file: no
// space is left for it. FAILED_PRECONDITION with the reason otherwise.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content, mode_t mode);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_FILES_H_
