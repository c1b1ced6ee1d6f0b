// A file that its owner alone may read, complete or not there at all.
#ifndef PRIVATEMAIL_CLIENT_CLI_PRIVATE_FILE_H_
#define PRIVATEMAIL_CLIENT_CLI_PRIVATE_FILE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail::client::cli {

// Made at once as a draft beside its final name, so that a folder that is missing or not writable
// is noticed before there is anything to write; put in place by Commit. Without Commit the draft is
// removed and what stood under the name stays.
class PrivateFile {
 public:
  // What Commit does with a file that has the name already.
  enum class Existing { kReplace, kKeep };

  // Mode 0600 from the start. INVALID_ARGUMENT naming `flag`: nothing can be written there.
  // ALREADY_EXISTS: there is a file, which is to be kept.
  static absl::StatusOr<PrivateFile> Create(const std::string& flag, const std::string& path,
                                            Existing existing = Existing::kReplace);
  ~PrivateFile();
  PrivateFile(PrivateFile&& other) noexcept
      : flag_(std::move(other.flag_)),
        path_(std::move(other.path_)),
        draft_(std::move(other.draft_)),
        existing_(other.existing_),
        file_(std::exchange(other.file_, -1)) {}
  PrivateFile& operator=(PrivateFile&&) = delete;

  const std::string& path() const { return path_; }

  // The next bytes. UNAVAILABLE: they could not be written.
  absl::Status Append(absl::string_view content);

  // Once, with the last bytes; the file is on disk when it returns OK. UNAVAILABLE: it could not be
  // written. ALREADY_EXISTS: a file that is to be kept has got the name meanwhile.
  absl::Status Commit(absl::string_view content);

 private:
  PrivateFile(std::string flag, std::string path, Existing existing)
      : flag_(std::move(flag)), path_(std::move(path)), existing_(existing) {}

  absl::Status CannotWrite() const;
  absl::Status Exists() const;
  // Gives the draft its name.
  bool Place();

  std::string flag_;
  std::string path_;
  std::string draft_;
  Existing existing_;
  int file_ = -1;
};

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PRIVATE_FILE_H_
