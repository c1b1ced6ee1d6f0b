#include "common/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/descriptor.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

absl::Status Failed(absl::string_view doing, const std::string& path) {
  const std::string message = absl::StrCat("cannot ", doing, " ", path, ": ", std::strerror(errno));
  const bool full = errno == ENOSPC || errno == EFBIG || errno == EDQUOT;
  return full ? absl::ResourceExhaustedError(message) : absl::FailedPreconditionError(message);
}

absl::Status WriteAndSync(int file, const std::string& path, absl::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0) return Failed("write", path);
    content.remove_prefix(static_cast<size_t>(written));
  }
  return ::fsync(file) == 0 ? absl::OkStatus() : Failed("sync", path);
}

absl::Status CheckRegular(int file, absl::string_view doing, const std::string& path) {
  struct stat properties = {};
  if (::fstat(file, &properties) != 0) return Failed(doing, path);
  if (S_ISREG(properties.st_mode)) return absl::OkStatus();
  errno = EISDIR;
  if (S_ISDIR(properties.st_mode)) return Failed(doing, path);
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", doing, " ", path, ": it must be a regular file, but is none"));
}

}  // namespace

absl::StatusOr<std::string> ReadFile(absl::string_view what, const std::string& path,
                                     size_t max_bytes) {
  const std::string doing = absl::StrCat("read ", what);
  // O_NONBLOCK: opening a pipe would wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) return Failed(doing, path);
  PM_RETURN_IF_ERROR(CheckRegular(file.get(), doing, path));
  std::string content;
  char buffer[4096];
  while (true) {
    const ssize_t size = ::read(file.get(), buffer, sizeof(buffer));
    if (size < 0) return Failed(doing, path);
    if (size == 0) return content;
    content.append(buffer, static_cast<size_t>(size));
    if (content.size() > max_bytes) {
      return absl::FailedPreconditionError(absl::StrCat("cannot ", doing, " ", path,
                                                        ": it must be at most ", max_bytes,
                                                        " bytes, but is larger"));
    }
  }
}

absl::StatusOr<std::string> ReadFileBytes(const std::string& path, size_t max_bytes) {
  namespace fs = std::filesystem;
  const auto wrong = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", parts...));
  };
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::not_found) return wrong("no such file");
  if (type == fs::file_type::directory) return wrong("expected a file, but it is a folder");
  if (!error && type != fs::file_type::regular) return wrong("expected a regular file");
  const uintmax_t size = error ? 0 : fs::file_size(path, error);
  if (error) return absl::PermissionDeniedError(absl::StrCat(path, ": ", error.message()));
  if (size == 0) return wrong("the file is empty");
  if (size > max_bytes) {
    return wrong("expected a file of at most ", max_bytes, " bytes, got ", size);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::PermissionDeniedError(absl::StrCat(path, ": cannot be opened"));
  std::string bytes(size, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (static_cast<uintmax_t>(file.gcount()) == size) return bytes;
  return absl::DataLossError(
      absl::StrCat(path, ": expected ", size, " bytes, read only ", file.gcount()));
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content, mode_t mode) {
  const std::string temporary = absl::StrCat(path, ".new");
  // A file left by a crash may have other permissions.
  ::unlink(temporary.c_str());
  {
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.get() < 0) return Failed("create", temporary);
    if (absl::Status status = WriteAndSync(file.get(), temporary, content); !status.ok()) {
      ::unlink(temporary.c_str());  // frees the space on a full disk
      return status;
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return Failed("rename to", path);
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const Descriptor parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.get() < 0 || ::fsync(parent.get()) != 0) return Failed("sync directory", directory);
  return absl::OkStatus();
}

}  // namespace privatemail
