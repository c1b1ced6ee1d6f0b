#include "client/privacy/accounting/ledger_witness.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
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

absl::StatusOr<int64_t> ReadStamp(int descriptor, const std::string& path) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return FileError(path, "examined");
  return int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec;
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
    record = {.ledger_id = json.at("ledger"),
              .generation = json.at("generation"),
              .change = json.at("change"),
              .written_at_nanoseconds = json.at("written_at")};
  } catch (const nlohmann::json::exception& error) {
    return damaged(error.what());
  }
  PM_ASSIGN_OR_RETURN(record.stamped_at_nanoseconds, ReadStamp(descriptor, path));
  return record;
}

std::string FormatRecord(const LedgerWitness::Record& record) {
  const nlohmann::json json = {{"ledger", record.ledger_id},
                               {"generation", record.generation},
                               {"change", record.change},
                               {"written_at", absl::GetCurrentTimeNanos()}};
  std::string text = absl::StrCat(" ", json.dump());
  text.resize(kRecordBytes - kDigestBytes - 1, ' ');
  text += '\n';
  text.insert(0, absl::BytesToHexString(Sha256::Of(text)));
  return text;
}

// Returns the kernel's stamp of the write.
absl::StatusOr<int64_t> WriteRecord(int descriptor, const LedgerWitness::Record& record,
                                    const std::string& path) {
  const std::string text = FormatRecord(record);
  if (pwrite(descriptor, text.data(), kRecordBytes, 0) != static_cast<ssize_t>(kRecordBytes) ||
      fsync(descriptor) != 0) {
    return absl::UnavailableError(FileError(path, "written").message());
  }
  return ReadStamp(descriptor, path);
}

}  // namespace

absl::StatusOr<LedgerWitness::Record> LedgerWitness::Read() const {
  const File file(path_, O_RDONLY | O_CLOEXEC);
  if (file.get() < 0) return FileError(path_, "opened");
  return ReadRecord(file.get(), path_);
}

absl::StatusOr<int64_t> LedgerWitness::Create(const Record& record) const {
  const File file(path_, O_RDWR | O_CREAT | O_CLOEXEC);
  if (file.get() < 0) return absl::UnavailableError(FileError(path_, "opened").message());
  PM_ASSIGN_OR_RETURN(const int64_t stamp, WriteRecord(file.get(), record, path_));
  PM_RETURN_IF_ERROR(SyncParentFolder(path_));  // the new directory entry may not be on disk
  return stamp;
}

absl::StatusOr<int64_t> LedgerWitness::Replace(const Record& previous, const Record& record) const {
  const File file(path_, O_RDWR | O_CLOEXEC);
  if (file.get() < 0) return FileError(path_, "opened");
  if (flock(file.get(), LOCK_EX) != 0) return FileError(path_, "locked");
  PM_ASSIGN_OR_RETURN(const Record current, ReadRecord(file.get(), path_));
  if (current != previous) {
    return absl::AbortedError(absl::StrCat(path_, " was changed by another ledger just now"));
  }
  return WriteRecord(file.get(), record, path_);
}

}  // namespace privatemail::client
