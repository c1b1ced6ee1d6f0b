#include "server/store/uuid.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace privatemail::server {

absl::StatusOr<std::string> NewUuid() {
  std::string bytes(16, '\0');
  // Up to 256 bytes the call returns all or fails.
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return absl::InternalError(
        absl::StrCat("the system's random generator failed: ", std::strerror(errno)));
  }
  bytes[6] = static_cast<char>((bytes[6] & 0x0f) | 0x40);  // version 4, RFC 4122
  bytes[8] = static_cast<char>((bytes[8] & 0x3f) | 0x80);
  const std::string hex = absl::BytesToHexString(bytes);
  return absl::StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

}  // namespace privatemail::server
