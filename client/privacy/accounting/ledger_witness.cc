#include "client/privacy/accounting/ledger_witness.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/digests.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

constexpr size_t kRecordBytes = 512;
constexpr size_t kDigestBytes = 64;

// A regular file or a folder. Opening and reading any other kind could block.
class File {
 public:
  File(const std::string& path, int flags)
      : descriptor_(open(path.c_str(), flags | O_NONBLOCK, 0600)) {
    struct stat status = {};
    if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) return;
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return;
    close(std::exchange(descriptor_, -1));
    errno = EINVAL;  // "Invalid argument"
  }
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

absl::Status FileError(const std::string& path, absl::string_view what) {
  const std::string message = absl::StrCat(path, " cannot be ", what, ": ", std::strerror(errno));
  return errno == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
}

absl::Status SyncParentFolder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const File file(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file.get() < 0 || fsync(file.get()) != 0) return FileError(path, "made durable");
  return absl::OkStatus();
}

// The properties that tell a file from every copy of it, and its ctime.
struct FileIdentity {
  uint64_t inode;
  int64_t born;  // 0: the file system does not say
  int64_t stamp;
};

int64_t Nanoseconds(const statx_timestamp& time) {
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

absl::StatusOr<FileIdentity> IdentityOf(int descriptor, const std::string& path) {
  struct statx status = {};
  if (statx(descriptor, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &status) != 0) {
    return FileError(path, "examined");
  }
  const bool has_birth = (status.stx_mask & STATX_BTIME) != 0;
  return FileIdentity{status.stx_ino, has_birth ? Nanoseconds(status.stx_btime) : 0,
                      Nanoseconds(status.stx_ctime)};
}

absl::StatusOr<LedgerWitness::Record> ReadRecord(int descriptor, const std::string& path) {
  std::string text(kRecordBytes, '\0');
  const ssize_t got = pread(descriptor, text.data(), kRecordBytes, 0);
  if (got < 0) return FileError(path, "read");
  text.resize(static_cast<size_t>(got));
  if (text.empty()) {
    return absl::NotFoundError(absl::StrCat(path, " is empty: its first record was not written"));
  }
  const auto damaged = [&](absl::string_view why) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: ", why));
  };
  if (text.size() != kRecordBytes) {
    return damaged(absl::StrCat("expected ", kRecordBytes, " bytes, got ", text.size()));
  }
  if (absl::BytesToHexString(Sha256::Of(absl::string_view(text).substr(kDigestBytes))) !=
      text.substr(0, kDigestBytes)) {
    return damaged("its digest does not match its content");
  }
  LedgerWitness::Record record;
  try {
    const auto json = nlohmann::json::parse(text.begin() + kDigestBytes, text.end());
    PM_ASSIGN_OR_RETURN(const FileIdentity file, IdentityOf(descriptor, path));
    record = {.ledger_id = json.at("ledger"),
              .generation = json.at("generation"),
              .change = json.at("change")};
    if (json.contains("written_at")) {
      record.stamp = file.stamp;
    } else {
      record.is_original = json.at("inode") == file.inode && json.at("born") == file.born;
    }
  } catch (const nlohmann::json::exception& error) {
    return damaged(error.what());
  }
  return record;
}

std::string FormatRecord(const LedgerWitness::Record& record, const FileIdentity& file) {
  const nlohmann::json json = {{"ledger", record.ledger_id},
                               {"generation", record.generation},
                               {"change", record.change},
                               {"inode", file.inode},
                               {"born", file.born}};
  std::string text = absl::StrCat(" ", json.dump());
  text.resize(kRecordBytes - kDigestBytes - 1, ' ');
  text += '\n';
  text.insert(0, absl::BytesToHexString(Sha256::Of(text)));
  return text;
}

// Puts a new file in place of the one at this path.
absl::Status WriteRecord(const LedgerWitness::Record& record, const std::string& path) {
  const std::string made = path + ".new";
  const auto failure = [&](absl::string_view what) {
    return absl::UnavailableError(FileError(made, what).message());
  };
  if (unlink(made.c_str()) != 0 && errno != ENOENT) return failure("removed");
  const File file(made, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC);
  if (file.get() < 0) return failure("made");
  PM_ASSIGN_OR_RETURN(const FileIdentity identity, IdentityOf(file.get(), made));
  const std::string text = FormatRecord(record, identity);
  if (pwrite(file.get(), text.data(), kRecordBytes, 0) != static_cast<ssize_t>(kRecordBytes) ||
      fsync(file.get()) != 0 || rename(made.c_str(), path.c_str()) != 0) {
    return failure("written");
  }
  return SyncParentFolder(path);
}

// Whether the path still names the open file, which another process may have replaced while this
// one waited for its lock.
bool IsAt(const std::string& path, int descriptor) {
  struct stat open = {}, named = {};
  return fstat(descriptor, &open) == 0 && stat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

}  // namespace

absl::StatusOr<LedgerWitness::Record> LedgerWitness::Read() const {
  const File file(path_, O_RDONLY | O_CLOEXEC);
  if (file.get() < 0) return FileError(path_, "opened");
  return ReadRecord(file.get(), path_);
}

absl::Status LedgerWitness::Create(const Record& record) const {
  return WriteRecord(record, path_);
}

absl::Status LedgerWitness::Replace(const Record& previous, const Record& record) const {
  const File file(path_, O_RDWR | O_CLOEXEC);
  if (file.get() < 0) return FileError(path_, "opened");
  if (flock(file.get(), LOCK_EX) != 0) return FileError(path_, "locked");
  const auto aborted = [&] {
    return absl::AbortedError(absl::StrCat(path_, " was changed by another ledger just now"));
  };
  if (!IsAt(path_, file.get())) return aborted();
  PM_ASSIGN_OR_RETURN(const Record current, ReadRecord(file.get(), path_));
  if (current != previous) return aborted();
  PM_RETURN_IF_ERROR(WriteRecord(record, path_));
  // A hard link to the former record could be put back, with a ledger of its time, also after the
  // loss of power.
  if (ftruncate(file.get(), 0) != 0 || fsync(file.get()) != 0) {
    return FileError(path_, "erased in its former version");
  }
  return absl::OkStatus();
}

}  // namespace privatemail::client
