#include "client/files/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"

namespace privatemail::client {

FolderLock::FolderLock(std::string what, const std::string& folder)
    : what_(std::move(what)), file_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

FolderLock::~FolderLock() {
  if (file_ >= 0) ::close(file_);
}

absl::Status FolderLock::Take(std::chrono::seconds max_wait) {
  const auto until = std::chrono::steady_clock::now() + max_wait;
  while (file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || std::chrono::steady_clock::now() > until) {
      return absl::UnavailableError(
          absl::StrCat(what_, ": the folder cannot be locked: ", std::strerror(errno)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return file_ >= 0 ? absl::OkStatus()
                    : absl::UnavailableError(absl::StrCat(what_, ": the folder cannot be opened"));
}

}  // namespace privatemail::client
