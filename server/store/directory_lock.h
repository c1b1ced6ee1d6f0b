// One daemon per data directory.
#ifndef PRIVATEMAIL_SERVER_STORE_DIRECTORY_LOCK_H_
#define PRIVATEMAIL_SERVER_STORE_DIRECTORY_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace privatemail::server {

// Holds a directory and its lock file `privatemail.lock`, which names the holder (flock, so the
// kernel lets go of both however the process ends). Move-only; released on destruction.
class DirectoryLock {
 public:
  // Creates the directory, readable by its owner alone, where there is none. FAILED_PRECONDITION:
  // "data directory D is locked by another daemon (pid N)", or the directory or its lock file
  // cannot be made, with the system's reason.
  static absl::StatusOr<DirectoryLock> Acquire(const std::string& directory);

  DirectoryLock(DirectoryLock&& other) noexcept
      : file_(std::exchange(other.file_, -1)), directory_(std::exchange(other.directory_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int file) : file_(file) {}
  int file_;  // descriptors, -1 once moved from
  int directory_ = -1;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_DIRECTORY_LOCK_H_
