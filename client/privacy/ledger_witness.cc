#include "client/privacy/ledger_witness.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

constexpr size_t kSize = 512;
constexpr size_t kDigest = 64;
constexpr int kFormat = 2;

class File {
 public:
  File(const std::string& path, int flags) : descriptor_(open(path.c_str(), flags, 0600)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

absl::Status Failure(const std::string& path, absl::string_view what) {
  const std::string message = absl::StrCat(path, " cannot be ", what, ": ", std::strerror(errno));
  return errno == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
}

absl::Status SyncFolderOf(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const File file(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file.get() < 0 || fsync(file.get()) != 0) return Failure(path, "made durable");
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Stamp(int descriptor, const std::string& path) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return Failure(path, "examined");
  return int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec;
}

std::string DigestOf(absl::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
}

LedgerWitness::Record RecordFrom(const nlohmann::json& json) {
  LedgerWitness::Record record;
  record.ledger_id = json.at("ledger");
  record.generation = json.at("generation");
  record.written_at_nanoseconds = json.at("written_at");
  return record;
}

}  // namespace

absl::StatusOr<LedgerWitness::Record> LedgerWitness::Read() const {
  const File file(path_, O_RDONLY | O_CLOEXEC);
  if (file.get() < 0) return Failure(path_, "opened");
  std::string text(kSize, '\0');
  const ssize_t got = pread(file.get(), text.data(), kSize, 0);
  if (got < 0) return Failure(path_, "read");
  text.resize(static_cast<size_t>(got));
  if (text.empty()) {
    return absl::NotFoundError(absl::StrCat(path_, " is empty: its first record was not written"));
  }
  const auto damaged = [&](absl::string_view why) {
    return absl::DataLossError(absl::StrCat(path_, " is damaged: ", why));
  };
  if (text.size() != kSize) {
    return damaged(absl::StrCat("expected ", kSize, " bytes, got ", text.size()));
  }
  if (DigestOf(absl::string_view(text).substr(kDigest)) != text.substr(0, kDigest)) {
    return damaged("its digest does not match its content");
  }
  Record record;
  try {
    record = RecordFrom(nlohmann::json::parse(text.begin() + kDigest, text.end()));
  } catch (const nlohmann::json::exception& error) {
    return damaged(error.what());
  }
  PM_ASSIGN_OR_RETURN(record.stamped_at_nanoseconds, Stamp(file.get(), path_));
  return record;
}

absl::StatusOr<int64_t> LedgerWitness::Write(const Record& record) const {
  const nlohmann::json json = {{"format", kFormat},
                               {"ledger", record.ledger_id},
                               {"generation", record.generation},
                               {"written_at", absl::GetCurrentTimeNanos()}};
  std::string text = absl::StrCat(" ", json.dump());
  text.resize(kSize - kDigest - 1, ' ');
  text += '\n';
  text.insert(0, DigestOf(text));

  const File file(path_, O_RDWR | O_CREAT | O_CLOEXEC);
  if (file.get() < 0) return absl::UnavailableError(Failure(path_, "opened").message());
  struct stat status;
  if (fstat(file.get(), &status) != 0) return Failure(path_, "examined");
  const bool fresh = status.st_size == 0;  // its name may not be on disk yet
  if (pwrite(file.get(), text.data(), kSize, 0) != static_cast<ssize_t>(kSize) ||
      fsync(file.get()) != 0) {
    return absl::UnavailableError(Failure(path_, "written").message());
  }
  if (fresh) PM_RETURN_IF_ERROR(SyncFolderOf(path_));
  return Stamp(file.get(), path_);
}

}  // namespace privatemail
