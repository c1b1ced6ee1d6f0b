#include "client/cli/private_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace privatemail::cli {
namespace {

bool WriteAll(int file, absl::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

absl::StatusOr<PrivateFile> PrivateFile::Create(const std::string& flag, const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, " is a folder, not a file"));
  }
  // A draft of one's own: two processes may write to the same path, and the last to end wins whole.
  std::string draft = path + ".XXXXXX";
  PrivateFile made(flag, path, ::mkostemp(draft.data(), O_CLOEXEC));  // mode 0600
  made.draft_ = std::move(draft);
  if (made.file_ < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", path, " cannot be written: ", std::strerror(errno)));
  }
  return made;
}

PrivateFile::~PrivateFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(draft_.c_str());
}

absl::Status PrivateFile::Commit(const std::string& content) {
  const bool written = WriteAll(file_, content) && ::close(std::exchange(file_, -1)) == 0 &&
                       std::rename(draft_.c_str(), path_.c_str()) == 0;
  if (written) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(flag_, " ", path_, " cannot be written: ", std::strerror(errno)));
}

}  // namespace privatemail::cli
