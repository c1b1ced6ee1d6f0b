// A file that its owner alone may read, complete or not there at all.
#ifndef PRIVATEMAIL_CLIENT_CLI_PRIVATE_FILE_H_
#define PRIVATEMAIL_CLIENT_CLI_PRIVATE_FILE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace privatemail::cli {

// Made at once as a draft beside its final name, so that a folder that is missing or not writable
// is noticed before there is anything to write; put in place by Commit. Without Commit the draft is
// removed and what stood under the name stays.
class PrivateFile {
 public:
  // Mode 0600 from the start. INVALID_ARGUMENT naming `flag`: nothing can be written there.
  static absl::StatusOr<PrivateFile> Create(const std::string& flag, const std::string& path);
  ~PrivateFile();
  PrivateFile(PrivateFile&& other) noexcept
      : flag_(std::move(other.flag_)),
        path_(std::move(other.path_)),
        draft_(std::move(other.draft_)),
        file_(std::exchange(other.file_, -1)) {}
  PrivateFile& operator=(PrivateFile&&) = delete;

  const std::string& path() const { return path_; }

  // Once. UNAVAILABLE: it could not be written.
  absl::Status Commit(const std::string& content);

 private:
  PrivateFile(std::string flag, std::string path, int file)
      : flag_(std::move(flag)), path_(std::move(path)), file_(file) {}

  std::string flag_;
  std::string path_;
  std::string draft_;
  int file_;
};

}  // namespace privatemail::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PRIVATE_FILE_H_
