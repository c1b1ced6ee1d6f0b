#include "common/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>

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

// O_NONBLOCK: opening a pipe would wait for a writer.
Descriptor OpenToRead(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

// Reads to the end of the file, but not much more than `max_bytes`: a file may grow after its size
// was taken. Returns false with errno set.
bool ReadUpTo(int file, size_t max_bytes, std::string* content) {
  constexpr size_t kPiece = size_t{1} << 20;
  struct stat properties = {};
  if (::fstat(file, &properties) != 0) return false;
  content->reserve(std::min(max_bytes, static_cast<size_t>(properties.st_size)));
  while (content->size() <= max_bytes) {
    const size_t before = content->size();
    content->resize(before + std::min(kPiece, max_bytes - before) + 1);
    const ssize_t size = ::read(file, content->data() + before, content->size() - before);
    content->resize(before + static_cast<size_t>(std::max<ssize_t>(size, 0)));
    if (size <= 0) return size == 0;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(absl::string_view what, const std::string& path,
                                     size_t max_bytes) {
  const std::string doing = absl::StrCat("read ", what);
  const Descriptor file = OpenToRead(path);
  if (file.get() < 0) return Failed(doing, path);
  PM_RETURN_IF_ERROR(CheckRegular(file.get(), doing, path));
  std::string content;
  if (!ReadUpTo(file.get(), max_bytes, &content)) return Failed(doing, path);
  if (content.size() <= max_bytes) return content;
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot ", doing, " ", path, ": it must be at most ", max_bytes, " bytes, but is larger"));
}

absl::StatusOr<std::string> ReadFileBytes(const std::string& path, size_t max_bytes) {
  const auto wrong = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", parts...));
  };
  const auto denied = [&] {
    return absl::PermissionDeniedError(absl::StrCat(path, ": ", std::strerror(errno)));
  };
  const Descriptor file = OpenToRead(path);
  if (file.get() < 0) return errno == ENOENT ? wrong("no such file") : denied();
  struct stat properties = {};
  if (::fstat(file.get(), &properties) != 0) return denied();
  if (S_ISDIR(properties.st_mode)) return wrong("expected a file, but it is a folder");
  if (!S_ISREG(properties.st_mode)) return wrong("expected a regular file");
  std::string content;
  const bool is_large = static_cast<uint64_t>(properties.st_size) > max_bytes;  // is not read
  if (!is_large && !ReadUpTo(file.get(), max_bytes, &content)) return denied();
  if (is_large || content.size() > max_bytes) {
    return wrong("expected a file of at most ", max_bytes, " bytes, got ",
                 std::max<int64_t>(properties.st_size, std::ssize(content)));
  }
  if (content.empty()) return wrong("the file is empty");
  return content;
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
