// Bytes that would not fit into memory, in a file that nobody else sees.
#ifndef PRIVATEMAIL_SERVER_STORE_SCRATCH_FILE_H_
#define PRIVATEMAIL_SERVER_STORE_SCRATCH_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail::server {

// A file of mode 0600 without a name: it is gone with this object, or with the process (where the
// file system cannot make one without a name, it has one for a moment). Bytes are appended first
// and read afterwards. Reading is thread-safe; appending is not.
class ScratchFile {
 public:
  // `holds` says in errors what it holds: "the features of a build". RESOURCE_EXHAUSTED: no space
  // is left for a file, or too many are open. FAILED_PRECONDITION with the reason: none can be made
  // in `directory`.
  static absl::StatusOr<std::unique_ptr<ScratchFile>> Create(const std::string& directory,
                                                             absl::string_view holds);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  // RESOURCE_EXHAUSTED: no space is left. UNAVAILABLE: it cannot be written.
  absl::Status Append(absl::string_view bytes);
  int64_t size() const { return size_; }

  // `size` bytes from `at` on. DATA_LOSS: there are not so many. UNAVAILABLE: it cannot be read.
  absl::Status Read(int64_t at, size_t size, char* bytes) const;

 private:
  ScratchFile(int file, absl::string_view holds) : file_(file), holds_(holds) {}
  absl::Status Unusable(absl::string_view doing) const;

  const int file_;
  const std::string holds_;
  int64_t size_ = 0;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_STORE_SCRATCH_FILE_H_
