// A lock on a folder, among processes and threads.
#ifndef PRIVATEMAIL_CLIENT_FILES_FOLDER_LOCK_H_
#define PRIVATEMAIL_CLIENT_FILES_FOLDER_LOCK_H_

#include <chrono>
#include <string>

#include "absl/status/status.h"

namespace privatemail::client {

// Exclusive from Take to the destructor.
class FolderLock {
 public:
  // what: what the folder holds, for messages.
  FolderLock(std::string what, const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // UNAVAILABLE: there is no such folder, or its file system has no locks, or another process holds
  // it for longer than max_wait (a write takes milliseconds; the process may be stopped).
  absl::Status Take(std::chrono::seconds max_wait = std::chrono::seconds(30));

 private:
  std::string what_;
  int file_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_FILES_FOLDER_LOCK_H_
