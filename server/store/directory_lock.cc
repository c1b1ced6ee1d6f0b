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
#include "absl/strings/strip.h"
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

std::string HolderOf(int file) {
  char text[32] = {};
  const ssize_t size = ::pread(file, text, sizeof(text) - 1, 0);
  return size > 0 ? std::string(absl::StripSuffix(text, "\n")) : "unknown";
}

// On a full disk the holder stays unnamed: its lock holds all the same. In place, because another
// file could take the space of a shortened one.
void NameHolder(int file) {
  const std::string pid = absl::StrCat(::getpid(), "\n");
  const auto size = static_cast<off_t>(pid.size());
  const bool written = ::pwrite(file, pid.data(), pid.size(), 0) == size;
  (void)!::ftruncate(file, written ? size : 0);
}

}  // namespace

absl::StatusOr<DirectoryLock> DirectoryLock::Acquire(const std::string& directory) {
  PM_RETURN_IF_ERROR(MakeDirectory(directory));
  const std::string path = absl::StrCat(directory, "/privatemail.lock");
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file.get() < 0) return Failed("open lock file", path, errno);
  // The directory as well, because the lock file could be deleted and created again.
  Descriptor folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return Failed("open data directory", directory, errno);
  for (const int locked : {file.get(), folder.get()}) {
    if (::flock(locked, LOCK_EX | LOCK_NB) == 0) continue;
    if (errno != EWOULDBLOCK) return Failed("lock", path, errno);
    return absl::FailedPreconditionError(absl::StrCat("data directory ", directory,
                                                      " is locked by another daemon (pid ",
                                                      HolderOf(file.get()), ")"));
  }
  NameHolder(file.get());
  return DirectoryLock(std::move(file), std::move(folder));
}

}  // namespace privatemail::server
