#include "server/store/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/operator_only_error.h"

namespace privatemail::server {

namespace {

bool IsFull(int error) { return error == ENOSPC || error == EFBIG || error == EDQUOT; }

}  // namespace

absl::StatusOr<std::unique_ptr<ScratchFile>> ScratchFile::Create(const std::string& directory,
                                                                 absl::string_view holds) {
  // Unlinked at once, so that a killed process leaves nothing behind. Not O_TMPFILE, which some
  // file systems lack.
  std::string path = absl::StrCat(directory, "/scratch-XXXXXX");
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file >= 0) {
    ::unlink(path.c_str());
    return std::unique_ptr<ScratchFile>(new ScratchFile(file, holds));
  }
  const int error = errno;
  const std::string message = absl::StrCat("cannot create a file for ", holds, " in ", directory,
                                           ": ", std::strerror(error));
  const bool full = IsFull(error) || error == EMFILE || error == ENFILE;
  return OperatorOnlyError(full ? absl::ResourceExhaustedError(message)
                                : absl::FailedPreconditionError(message));
}

absl::Status ScratchFile::Unusable(absl::string_view doing) const {
  const std::string message = absl::StrCat("cannot ", doing, " the file in data_dir for ", holds_,
                                           ": ", std::strerror(errno));
  return OperatorOnlyError(IsFull(errno) ? absl::ResourceExhaustedError(message)
                                         : absl::UnavailableError(message));
}

absl::Status ScratchFile::Append(absl::string_view bytes) {
  int64_t at = size_;
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_.get(), bytes.data(), bytes.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Unusable("write");
    bytes.remove_prefix(static_cast<size_t>(written));
    at += written;
  }
  size_ = at;  // a part does not count
  return absl::OkStatus();
}

absl::Status ScratchFile::Read(int64_t at, size_t size, char* bytes) const {
  while (size > 0) {
    const ssize_t read = ::pread(file_.get(), bytes, size, at);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return Unusable("read");
    if (read == 0) {
      return absl::DataLossError(
          absl::StrCat("the file in data_dir for ", holds_, " is shorter than was written"));
    }
    bytes += read;
    at += read;
    size -= static_cast<size_t>(read);
  }
  return absl::OkStatus();
}

}  // namespace privatemail::server
