// A lock on a data directory.
#ifndef PRIVATEMAIL_SERVER_STORE_DIRECTORY_LOCK_H_
#define PRIVATEMAIL_SERVER_STORE_DIRECTORY_LOCK_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/descriptor.h"

namespace privatemail::server {

// An flock on a directory and its file `privatemail.lock`, which names the holder if the disk has
// space; the kernel releases it when the process ends. The same for every kind of store. Move-only;
// released on destruction.
class DirectoryLock {
 public:
  // Creates the directory, mode 0700, if there is none. FAILED_PRECONDITION: "data directory D is
  // locked by another daemon (pid N)", or directory or lock file cannot be created.
  static absl::StatusOr<DirectoryLock> Acquire(const std::string& directory);

 private:
  DirectoryLock(Descriptor file, Descriptor directory)
      : file_(std::move(file)), directory_(std::move(directory)) {}
  Descriptor file_;
  Descriptor directory_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_DIRECTORY_LOCK_H_
