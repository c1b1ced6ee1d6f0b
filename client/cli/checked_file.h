// Files of the state folder whose damage is noticed.
#ifndef PRIVATEMAIL_CLIENT_CLI_CHECKED_FILE_H_
#define PRIVATEMAIL_CLIENT_CLI_CHECKED_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail::client::cli {

// The SHA-256 of the content, then the content. For its owner alone, replaced atomically: of
// processes that save at once, the last wins whole. UNAVAILABLE naming `what`: it cannot be
// written.
absl::Status SaveChecked(const std::string& what, const std::string& path,
                         absl::string_view content);

// NOT_FOUND: there is no such file. DATA_LOSS: it is damaged.
absl::StatusOr<std::string> LoadChecked(const std::string& path);

// What is wrong with the file where its content is none: DATA_LOSS.
absl::Status DamagedFile(const std::string& path);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_CHECKED_FILE_H_
