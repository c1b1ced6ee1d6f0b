#include "common/features/file_bytes.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace privatemail {

absl::StatusOr<std::string> ReadFileBytes(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status kind = fs::status(path, error);
  if (kind.type() == fs::file_type::not_found) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no such file"));
  }
  if (kind.type() == fs::file_type::directory) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected a file, but it is a folder"));
  }
  if (error) return absl::PermissionDeniedError(absl::StrCat(path, ": ", error.message()));
  if (kind.type() != fs::file_type::regular) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": expected a regular file"));
  }
  const uintmax_t size = fs::file_size(path, error);
  if (error) return absl::PermissionDeniedError(absl::StrCat(path, ": ", error.message()));
  if (size == 0) return absl::InvalidArgumentError(absl::StrCat(path, ": the file is empty"));
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::PermissionDeniedError(absl::StrCat(path, ": cannot be opened"));
  std::string bytes(size, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (static_cast<uintmax_t>(file.gcount()) != size) {
    return absl::DataLossError(
        absl::StrCat(path, ": expected ", size, " bytes, read only ", file.gcount()));
  }
  return bytes;
}

}  // namespace privatemail
