#include "common/sqlite/wal_mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/descriptor.h"
#include "common/base/digests.h"
#include "common/base/operator_only_error.h"
#include "common/sqlite/checksums.h"

namespace privatemail::sqlite {
namespace {

// salts 8, frames 8 (big-endian), the first 8 bytes of SHA-256 over these.
constexpr size_t kClaimBytes = 16;
constexpr size_t kSumBytes = 8;
using Bytes = std::array<unsigned char, kClaimBytes + kSumBytes>;

struct Claim {
  std::array<unsigned char, 8> salts{};
  uint64_t frames = 0;
};

std::string ChecksumOf(const Bytes& bytes) {
  return Sha256::Of({reinterpret_cast<const char*>(bytes.data()), kClaimBytes})
      .substr(0, kSumBytes);
}

Bytes Encode(const Claim& claim) {
  Bytes bytes;
  std::copy(claim.salts.begin(), claim.salts.end(), bytes.begin());
  for (int i = 0; i < 8; ++i) {
    bytes[8 + static_cast<size_t>(i)] = static_cast<unsigned char>(claim.frames >> (56 - 8 * i));
  }
  std::memcpy(bytes.data() + kClaimBytes, ChecksumOf(bytes).data(), kSumBytes);
  return bytes;
}

// A log, mark or database file, open for reading.
class WalFile {
 public:
  explicit WalFile(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

  bool exists() const { return file_.get() >= 0; }
  bool operator()(int64_t offset, int bytes, unsigned char* out) const {
    return ::pread(file_.get(), out, static_cast<size_t>(bytes), offset) == bytes;
  }

 private:
  const Descriptor file_;
};

// A damaged or missing mark claims nothing.
Claim ReadMark(const std::string& database) {
  Bytes bytes;
  Claim claim;
  if (!WalFile(database + "-mark")(0, static_cast<int>(bytes.size()), bytes.data()) ||
      std::memcmp(bytes.data() + kClaimBytes, ChecksumOf(bytes).data(), kSumBytes) != 0) {
    return claim;
  }
  std::copy_n(bytes.begin(), claim.salts.size(), claim.salts.begin());
  for (size_t i = 8; i < kClaimBytes; ++i) claim.frames = claim.frames << 8 | bytes[i];
  return claim;
}

// Whether the first page of a database has the log flag.
bool HasLogFlag(const std::string& path) {
  const WalFile file(path);
  std::vector<unsigned char> page(kDatabaseHeaderBytes);
  if (!file(0, kDatabaseHeaderBytes, page.data())) return false;
  const int bytes = PageBytesOf(page.data());
  if (bytes == 0) return false;
  page.resize(static_cast<size_t>(bytes));
  return file(0, bytes, page.data()) && ReadLogFlag(page.data(), bytes).value_or(false);
}

std::string WalPath(const std::string& database) { return database + "-wal"; }

// Returns 0 or errno.
int Write(const std::string& database, const Claim& claim, bool sync) {
  const Descriptor file(
      ::open((database + "-mark").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.get() < 0) return errno;
  const Bytes bytes = Encode(claim);
  errno = EIO;
  if (::pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return errno;
  }
  return sync && ::fsync(file.get()) != 0 ? errno : 0;
}

absl::Status CheckLogFlag(const std::string& database_path) {
  const WalFile log(WalPath(database_path));
  unsigned char first;
  if (log(0, 1, &first) || !HasLogFlag(database_path)) return absl::OkStatus();
  return OperatorOnlyError(absl::DataLossError(absl::StrCat(
      "database file ", WalPath(database_path), log.exists() ? " is empty" : " is not there",
      ", but ", database_path,
      " notes that it needs its log: only a part was copied, or another program has opened "
      "the database for writing; put the log back, or restore from a backup")));
}

}  // namespace

void SetWalMark(const std::string& database_path, int64_t frames) {
  const auto header = ReadWalHeader(WalFile(WalPath(database_path)));
  if (!header) return;  // the damage is reported when the log is read
  Write(database_path, {header->salts, static_cast<uint64_t>(frames)}, /*sync=*/false);
}

absl::Status ClearWalMark(const std::string& database_path) {
  const int error = Write(database_path, Claim(), /*sync=*/true);
  if (error == 0) return absl::OkStatus();
  return OperatorOnlyError(absl::ErrnoToStatus(
      error == EFBIG ? ENOSPC : error, absl::StrCat("cannot write ", database_path, "-mark")));
}

absl::Status CheckWal(const std::string& database_path) {
  const Claim claim = ReadMark(database_path);
  if (claim.frames == 0) return CheckLogFlag(database_path);
  const WalFile log(WalPath(database_path));
  if (!log.exists()) {
    return OperatorOnlyError(absl::DataLossError(absl::StrCat(
        "database file ", WalPath(database_path), " is not there, but ", claim.frames,
        " frames of it were synced: only a part was copied, or another program has opened the "
        "database for writing; restore it from a backup")));
  }
  const auto header = ReadWalHeader(log);
  if (header && header->salts == claim.salts &&
      WalMatches(*header, static_cast<int64_t>(claim.frames), log)) {
    return absl::OkStatus();  // The log is there, which is all that the flag asks for.
  }
  return OperatorOnlyError(absl::DataLossError(
      absl::StrCat("database file ", WalPath(database_path), " is damaged (it holds less than the ",
                   claim.frames, " frames that were synced): restore it from a backup")));
}

}  // namespace privatemail::sqlite
