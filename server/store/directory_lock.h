// A lock on a data directory.
#ifndef PRIVATEMAIL_SERVER_STORE_DIRECTORY_LOCK_H_
#define PRIVATEMAIL_SERVER_STORE_DIRECTORY_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/base/descriptor.h"

namespace privatemail::server {

// Creates the directory, mode 0700, if there is none. The flock on it, the same for every kind of
// store, ends with the descriptor or the process. FAILED_PRECONDITION: another daemon has it, or
// the directory cannot be created.
absl::StatusOr<Descriptor> LockDirectory(const std::string& directory);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_DIRECTORY_LOCK_H_
