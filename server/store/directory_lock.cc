#include "server/store/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

absl::Status Failed(absl::string_view what, const std::string& path, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(error)));
}

absl::Status MakeDirectory(const std::string& directory) {
  if (directory.empty()) {
    return absl::FailedPreconditionError("the data directory must have a name, but it is empty");
  }
  std::filesystem::path path = std::filesystem::absolute(directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "D/" is D
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return Failed("create directory", path.parent_path().string(), error.value());
  // 0700, because galleries on disk are in the clear.
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Failed("create directory", path.string(), errno);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Descriptor> LockDirectory(const std::string& directory) {
  PM_RETURN_IF_ERROR(MakeDirectory(directory));
  Descriptor folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return Failed("open data directory", directory, errno);
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) return folder;
  if (errno != EWOULDBLOCK) return Failed("lock data directory", directory, errno);
  return absl::FailedPreconditionError(
      absl::StrCat("data directory ", directory, " is locked by another daemon"));
}

}  // namespace privatemail::server
