// An unnamed temporary file.
#ifndef PRIVATEMAIL_SERVER_STORE_SCRATCH_FILE_H_
#define PRIVATEMAIL_SERVER_STORE_SCRATCH_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/descriptor.h"

namespace privatemail::server {

// A file of mode 0600 without a name but for a moment, deleted with this object or the process.
// Bytes are written first and read afterwards.
// Reading is thread-safe; writing is not.
class ScratchFile {
 public:
  // holds: names the content in errors, "the features of a build". RESOURCE_EXHAUSTED: no space, or
  // too many open files. FAILED_PRECONDITION: no file can be created in `directory`.
  static absl::StatusOr<std::unique_ptr<ScratchFile>> Create(const std::string& directory,
                                                             absl::string_view holds);

  // RESOURCE_EXHAUSTED: no space. UNAVAILABLE: it cannot be written.
  absl::Status Append(absl::string_view bytes);
  int64_t size() const { return size_; }

  // `size` bytes from offset `at`. DATA_LOSS: the file is shorter. UNAVAILABLE: it cannot be read.
  absl::Status Read(int64_t at, size_t size, char* bytes) const;

 private:
  ScratchFile(int file, absl::string_view holds) : file_(file), holds_(holds) {}
  absl::Status Unusable(absl::string_view doing) const;

  const Descriptor file_;
  const std::string holds_;
  int64_t size_ = 0;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_SCRATCH_FILE_H_
