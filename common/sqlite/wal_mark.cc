#include "common/sqlite/wal_mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/digests.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"
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

Claim Decode(const Bytes& bytes) {
  Claim claim;
  if (std::memcmp(bytes.data() + kClaimBytes, ChecksumOf(bytes).data(), kSumBytes) != 0)
    return claim;
  std::copy_n(bytes.begin(), claim.salts.size(), claim.salts.begin());
  for (size_t i = 8; i < kClaimBytes; ++i) claim.frames = claim.frames << 8 | bytes[i];
  return claim;
}

// A log, mark or database file, open for reading.
class WalFile {
 public:
  explicit WalFile(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~WalFile() {
    if (file_ >= 0) ::close(file_);
  }
  WalFile(const WalFile&) = delete;
  WalFile& operator=(const WalFile&) = delete;

  bool exists() const { return file_ >= 0; }
  bool operator()(int64_t offset, int bytes, unsigned char* out) const {
    return ::pread(file_, out, static_cast<size_t>(bytes), offset) == bytes;
  }

 private:
  const int file_;
};

// Whether the first page of a database has the log flag.
bool HasLogFlag(const std::string& path) {
  const WalFile file(path);
  std::vector<unsigned char> page(kDatabaseHeaderBytes);
  if (!file.exists() || !file(0, kDatabaseHeaderBytes, page.data())) return false;
  const int bytes = PageBytesOf(page.data());
  if (bytes == 0) return false;
  page.resize(static_cast<size_t>(bytes));
  return file(0, bytes, page.data()) && ReadLogFlag(page.data(), bytes).value_or(false);
}

std::string WalPath(const std::string& database) { return database + "-wal"; }

// Returns 0 or errno.
int Write(const std::string& database, const Claim& claim, bool sync) {
  const int file =
      ::open((database + "-mark").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return errno;
  const auto close = absl::MakeCleanup([file] { ::close(file); });
  const Bytes bytes = Encode(claim);
  errno = EIO;
  if (::pwrite(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return errno;
  }
  return sync && ::fsync(file) != 0 ? errno : 0;
}

}  // namespace

void WalMark::Set(int64_t frames) const {
  const WalFile log(WalPath(path_));
  const auto header = log.exists() ? ReadWalHeader(log) : std::nullopt;
  if (!header) return;  // the damage is reported when the log is read
  Write(path_, {header->salts, static_cast<uint64_t>(frames)}, /*sync=*/false);
}

absl::Status WalMark::Clear() const {
  const int error = Write(path_, Claim(), /*sync=*/true);
  if (error == 0) return absl::OkStatus();
  return OperatorOnlyError(absl::ErrnoToStatus(error == EFBIG ? ENOSPC : error,
                                               absl::StrCat("cannot write ", path_, "-mark")));
}

absl::Status WalMark::CheckMark() const {
  const WalFile mark(path_ + "-mark");
  Bytes bytes;
  if (!mark.exists() || !mark(0, static_cast<int>(bytes.size()), bytes.data())) {
    return absl::OkStatus();
  }
  const Claim claim = Decode(bytes);
  const WalFile log(WalPath(path_));
  if (claim.frames == 0) return absl::OkStatus();
  if (!log.exists()) {
    return OperatorOnlyError(absl::DataLossError(absl::StrCat(
        "database file ", WalPath(path_), " is not there, but ", claim.frames,
        " frames of it were synced: only a part was copied, or another program has opened the "
        "database for writing; restore it from a backup")));
  }
  const auto header = ReadWalHeader(log);
  if (header && header->salts == claim.salts &&
      WalMatches(*header, static_cast<int64_t>(claim.frames), log)) {
    return absl::OkStatus();
  }
  return OperatorOnlyError(absl::DataLossError(
      absl::StrCat("database file ", WalPath(path_), " is damaged (it holds less than the ",
                   claim.frames, " frames that were synced): restore it from a backup")));
}

absl::Status WalMark::CheckLogFlag() const {
  const WalFile log(WalPath(path_));
  unsigned char first;
  if (log.exists() && log(0, 1, &first)) return absl::OkStatus();
  if (!HasLogFlag(path_)) return absl::OkStatus();
  return OperatorOnlyError(absl::DataLossError(absl::StrCat(
      "database file ", WalPath(path_), log.exists() ? " is empty" : " is not there", ", but ",
      path_,
      " notes that it needs its log: only a part was copied, or another program has opened "
      "the database for writing; put the log back, or restore from a backup")));
}

absl::Status WalMark::Check() const {
  PM_RETURN_IF_ERROR(CheckMark());
  return CheckLogFlag();
}

}  // namespace privatemail::sqlite
