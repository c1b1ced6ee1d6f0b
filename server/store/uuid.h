// Names that no other collection has.
#ifndef PRIVATEMAIL_SERVER_STORE_UUID_H_
#define PRIVATEMAIL_SERVER_STORE_UUID_H_

#include <string>

#include "absl/status/statusor.h"

namespace privatemail::server {

// A random (version 4) UUID from the operating system's generator. INTERNAL when that fails.
absl::StatusOr<std::string> NewUuid();

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_UUID_H_
