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

namespace privatemail::client::cli {
namespace {

bool WriteAll(int file, absl::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// A new name is on disk when its folder is.
bool SyncFolder(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  const int folder =
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  const bool synced = ::fsync(folder) == 0;
  ::close(folder);
  return synced;
}

}  // namespace

absl::StatusOr<PrivateFile> PrivateFile::Create(const std::string& flag, const std::string& path,
                                                Existing existing) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, " is a folder, not a file"));
  }
  PrivateFile made(flag, path, existing);
  if (existing == Existing::kKeep &&
      std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
    return made.Exists();
  }
  // A draft of one's own: two processes may write to the same path, and the last to end wins whole.
  made.draft_ = path + ".XXXXXX";
  made.file_ = ::mkostemp(made.draft_.data(), O_CLOEXEC);  // mode 0600
  if (made.file_ < 0) return absl::InvalidArgumentError(made.CannotWrite().message());
  return made;
}

PrivateFile::~PrivateFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(draft_.c_str());
}

absl::Status PrivateFile::CannotWrite() const {
  return absl::UnavailableError(
      absl::StrCat(flag_, " ", path_, " cannot be written: ", std::strerror(errno)));
}

absl::Status PrivateFile::Exists() const {
  return absl::AlreadyExistsError(absl::StrCat(flag_, " ", path_, " exists already"));
}

absl::Status PrivateFile::Append(absl::string_view content) {
  return WriteAll(file_, content) ? absl::OkStatus() : CannotWrite();
}

bool PrivateFile::Place() {
  if (existing_ == Existing::kReplace) return std::rename(draft_.c_str(), path_.c_str()) == 0;
  // Unlike a rename, a link does not take a name that is there.
  if (::link(draft_.c_str(), path_.c_str()) != 0) return false;
  ::unlink(draft_.c_str());
  return true;
}

absl::Status PrivateFile::Commit(absl::string_view content) {
  const bool written = WriteAll(file_, content) && ::fsync(file_) == 0 && Place();
  if (!written && errno == EEXIST) return Exists();
  if (!written) return CannotWrite();
  // The draft is the file now: nothing of it is removed any more.
  const bool durable = ::close(std::exchange(file_, -1)) == 0 && SyncFolder(path_);
  return durable ? absl::OkStatus() : CannotWrite();
}

}  // namespace privatemail::client::cli
