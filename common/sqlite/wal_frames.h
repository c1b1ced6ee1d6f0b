// Checksums of the frames of SQLite's write-ahead log (-wal), see
// https://sqlite.org/fileformat2.html, section 4. SQLite verifies them only when it opens an
// existing log, and takes the first mismatch for the end of the log.
#ifndef PRIVATEMAIL_COMMON_SQLITE_WAL_FRAMES_H_
#define PRIVATEMAIL_COMMON_SQLITE_WAL_FRAMES_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"

namespace privatemail::sqlite {

inline constexpr int kWalHeaderBytes = 32;
inline constexpr int kFrameHeaderBytes = 24;  // before each page

// Reads `bytes` bytes of a log at `offset`; false if they do not exist.
using ReadWal = absl::FunctionRef<bool(int64_t offset, int bytes, unsigned char* out)>;

struct WalHeader {
  int page_bytes = 0;
  bool big_endian = false;             // byte order of the sums; stored words are always big endian
  std::array<unsigned char, 8> salts;  // of all frames since the log was restarted
  std::array<uint32_t, 2> checksum{};  // initial value for the first frame
};

// nullopt: there is no header, or it does not match its checksum.
std::optional<WalHeader> ReadWalHeader(ReadWal read);

// Offsets of the header and the page of frame number `frame`, from 0.
int64_t FrameOffset(const WalHeader& header, int64_t frame);
int64_t PageOffset(const WalHeader& header, int64_t frame);

// Whether a frame with this page matches its checksum, which continues that of the frame before.
bool FrameMatches(const WalHeader& header, int64_t frame, const unsigned char* page, ReadWal read);

// Whether the first `frames` frames exist and match.
bool WalMatches(const WalHeader& header, int64_t frames, ReadWal read);

}  // namespace privatemail::sqlite

#endif  // PRIVATEMAIL_COMMON_SQLITE_WAL_FRAMES_H_
