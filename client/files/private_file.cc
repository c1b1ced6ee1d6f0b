#include "client/files/private_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/digests.h"
#include "common/base/files.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

constexpr size_t kDigestBytes = 32;
constexpr char kDraftPrefix[] = ".draft-";

bool WriteAll(int file, absl::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::string FolderOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

std::string ProcPath(int file) { return absl::StrCat("/proc/self/fd/", file); }

// A file without a name in the folder. -1: the file system has none (NFS), or there is no /proc.
int OpenUnnamed(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0 || ::access(ProcPath(file).c_str(), F_OK) == 0) return file;
  ::close(file);
  return -1;
}

// Names such a file. EEXIST: the name is taken.
bool LinkUnnamed(int file, const std::string& path) {
  return ::linkat(AT_FDCWD, ProcPath(file).c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

// A rename is durable once the folder is synced.
bool SyncFolder(const std::string& path) {
  const int folder = ::open(FolderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  const bool synced = ::fsync(folder) == 0;
  ::close(folder);
  return synced;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateFile>> PrivateFile::Create(const std::string& flag,
                                                                 const std::string& path,
                                                                 Existing existing) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, " is a folder, not a file"));
  }
  // A device or pipe would be replaced.
  if (std::filesystem::is_other(std::filesystem::symlink_status(path, ignored))) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", path, " is no regular file"));
  }
  std::unique_ptr<PrivateFile> file(new PrivateFile(flag, path, existing));
  if (existing == Existing::kKeep &&
      std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
    return file->Exists();
  }
  // A draft of each process: of two that write to one path, the last to commit wins whole. Without
  // a name if possible, so that nothing stays after a kill.
  file->file_ = OpenUnnamed(FolderOf(path));
  if (file->file_ < 0) {
    file->draft_ = absl::StrCat(FolderOf(path), "/", kDraftPrefix, "XXXXXX");
    file->file_ = ::mkostemp(file->draft_.data(), O_CLOEXEC);  // mode 0600
  }
  if (file->file_ < 0) return absl::InvalidArgumentError(file->CannotWrite().message());
  return file;
}

PrivateFile::~PrivateFile() {
  if (file_ < 0) return;
  ::close(file_);
  if (!draft_.empty()) ::unlink(draft_.c_str());
}

absl::Status PrivateFile::CannotWrite() const {
  return absl::UnavailableError(
      absl::StrCat(flag_, " ", path_, " cannot be written: ", std::strerror(errno)));
}

absl::Status PrivateFile::Exists() const {
  return absl::AlreadyExistsError(absl::StrCat(flag_, " ", path_, " exists already"));
}

absl::Status PrivateFile::Reserve(int64_t bytes) {
  errno = ::posix_fallocate(file_, 0, bytes);
  return errno == 0 ? absl::OkStatus() : CannotWrite();
}

absl::Status PrivateFile::Append(absl::string_view content) {
  return WriteAll(file_, content) ? absl::OkStatus() : CannotWrite();
}

bool PrivateFile::RenameDraft() {
  if (existing_ == Existing::kKeep) {
    // Unlike rename, link fails if the name exists.
    if (draft_.empty()) return LinkUnnamed(file_, path_);
    if (::link(draft_.c_str(), path_.c_str()) != 0) return false;
    ::unlink(draft_.c_str());
    return true;
  }
  if (draft_.empty()) {
    // Short, since a name has at most 255 bytes.
    std::string name = absl::StrCat(FolderOf(path_), "/", kDraftPrefix, ::getpid(), "-", file_, "-",
                                    absl::GetCurrentTimeNanos());
    if (!LinkUnnamed(file_, name)) return false;
    draft_ = std::move(name);
  }
  return std::rename(draft_.c_str(), path_.c_str()) == 0;
}

absl::Status PrivateFile::Commit(absl::string_view content, Durability durability) {
  const bool synced = durability == Durability::kSynced;
  const bool written = WriteAll(file_, content) &&
                       ::ftruncate(file_, ::lseek(file_, 0, SEEK_CUR)) == 0 &&
                       (!synced || ::fsync(file_) == 0) && RenameDraft();
  if (!written && errno == EEXIST) return Exists();
  if (!written) return CannotWrite();
  const bool closed = ::close(std::exchange(file_, -1)) == 0 && (!synced || SyncFolder(path_));
  return closed ? absl::OkStatus() : CannotWrite();
}

namespace {

// Removes drafts that killed processes left, in a folder of few files.
void RemoveOldDrafts(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    if (!absl::StartsWith(file->path().filename().string(), kDraftPrefix)) continue;
    const fs::file_time_type written = file->last_write_time(error);
    const bool old = !error && fs::file_time_type::clock::now() - written > std::chrono::hours(1);
    if (old) fs::remove(file->path(), error);
  }
}

}  // namespace

absl::Status SaveChecked(const std::string& what, const std::string& path,
                         absl::string_view content, std::unique_ptr<PrivateFile> draft) {
  if (draft == nullptr) {
    auto file = PrivateFile::Create(what, path);
    if (!file.ok()) return absl::UnavailableError(file.status().message());
    draft = *std::move(file);
  }
  PM_RETURN_IF_ERROR(draft->Commit(absl::StrCat(Sha256::Of(content), content)));
  RemoveOldDrafts(FolderOf(path));
  return absl::OkStatus();
}

absl::StatusOr<std::string> LoadChecked(const std::string& path) {
  std::error_code error;
  if (std::filesystem::status(path, error).type() == std::filesystem::file_type::not_found) {
    return absl::NotFoundError(absl::StrCat(path, " does not exist"));
  }
  PM_ASSIGN_OR_RETURN(std::string bytes, ReadFile("the file", path, SIZE_MAX));
  const std::string digest = bytes.substr(0, kDigestBytes);
  bytes.erase(0, std::min(bytes.size(), kDigestBytes));
  if (digest == Sha256::Of(bytes)) return bytes;
  return DamagedFile(path);
}

absl::Status DamagedFile(const std::string& path) {
  return absl::DataLossError(absl::StrCat(path, " is damaged, or of another version"));
}

}  // namespace privatemail::client
