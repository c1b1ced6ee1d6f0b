// Files of mode 0600 that are written whole or not at all, and such files with a checksum.
#ifndef PRIVATEMAIL_CLIENT_FILES_PRIVATE_FILE_H_
#define PRIVATEMAIL_CLIENT_FILES_PRIVATE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace privatemail::client {

// A draft in the folder of its final name, which Commit gives it.
// - Created first: a missing or read-only folder is an error before there is anything to write.
// - Without Commit the draft is removed and a former file stays.
// - A killed process leaves no draft, but for .draft-*: between two system calls, or at any time on
//   file systems without O_TMPFILE.
class PrivateFile {
 public:
  // Action of Commit if a file of the name exists.
  enum class Existing { kReplace, kKeep };
  // Whether Commit waits until the file is on disk. Unsynced files may be damaged by a power loss:
  // for caches whose readers check what they read.
  enum class Durability { kSynced, kUnsynced };

  // INVALID_ARGUMENT naming `flag`: nothing can be written there.
  // ALREADY_EXISTS: with Existing::kKeep, the file exists.
  static absl::StatusOr<std::unique_ptr<PrivateFile>> Create(
      const std::string& flag, const std::string& path, Existing existing = Existing::kReplace);
  ~PrivateFile();
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;

  // Takes disk space for so many bytes from the start; what Commit does not use is free again.
  // UNAVAILABLE: there is not enough.
  absl::Status Reserve(int64_t bytes);

  // UNAVAILABLE: the bytes cannot be written.
  absl::Status Append(absl::string_view content);

  // Appends the last bytes, syncs and renames; call it once.
  // UNAVAILABLE: the file cannot be written.
  // ALREADY_EXISTS: with Existing::kKeep, the file was created in the meantime.
  absl::Status Commit(absl::string_view content, Durability durability = Durability::kSynced);

 private:
  PrivateFile(std::string flag, std::string path, Existing existing)
      : flag_(std::move(flag)), path_(std::move(path)), existing_(existing) {}

  absl::Status CannotWrite() const;
  absl::Status Exists() const;
  bool RenameDraft();

  std::string flag_;
  std::string path_;
  std::string draft_;
  Existing existing_;
  int file_ = -1;
};

// Writes the SHA-256 of the content, then the content. The last of concurrent writers wins whole.
// Removes drafts that are older than an hour.
// draft: of the path, perhaps with reserved space; null: a new one.
// UNAVAILABLE naming `what`: the file cannot be written.
absl::Status SaveChecked(const std::string& what, const std::string& path,
                         absl::string_view content, std::unique_ptr<PrivateFile> draft = nullptr);

// NOT_FOUND: no such file. DATA_LOSS: the digest does not fit. FAILED_PRECONDITION: it cannot be
// read; a folder, a pipe or a device.
absl::StatusOr<std::string> LoadChecked(const std::string& path);

// DATA_LOSS for a file whose digest fits and whose content does not parse.
absl::Status DamagedFile(const std::string& path);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_FILES_PRIVATE_FILE_H_
