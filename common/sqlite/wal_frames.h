// The frames of SQLite's write-ahead log (-wal), as https://sqlite.org/fileformat2.html, section 4,
// has them. SQLite checks their checksums when it opens a log that was left behind, and takes the
// first that does not match for the end of the log; afterwards it believes what it reads.
#ifndef PRIVATEMAIL_COMMON_SQLITE_LOG_FRAMES_H_
#define PRIVATEMAIL_COMMON_SQLITE_LOG_FRAMES_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"

namespace privatemail::sqlite {

inline constexpr int kWalHeaderBytes = 32;
inline constexpr int kFrameHeaderBytes = 24;  // before each page

// Reads that many bytes of a log; false when they are not there.
using ReadWal = absl::FunctionRef<bool(int64_t offset, int bytes, unsigned char* out)>;

struct WalHeader {
  int page_bytes = 0;
  bool big_endian = false;             // how words are added up; they are always stored so
  std::array<unsigned char, 8> salts;  // of all frames since the log began anew
  std::array<uint32_t, 2> checksum{};  // where that of the first frame goes on
};

// Nothing: there is none, or it does not match its checksum.
std::optional<WalHeader> ReadWalHeader(ReadWal read);

// Of frame number `frame`, from 0: its header's, and its page's, place.
int64_t FrameOffset(const WalHeader& header, int64_t frame);
int64_t PageOffset(const WalHeader& header, int64_t frame);

// Whether a frame that is read from the log with this page matches its checksum, which goes on from
// the one that the frame before it has.
bool FrameMatches(const WalHeader& header, int64_t frame, const unsigned char* page, ReadWal read);

// Whether the first `frames` frames are there and each matches.
bool WalMatches(const WalHeader& header, int64_t frames, ReadWal read);

}  // namespace privatemail::sqlite

#endif  // PRIVATEMAIL_COMMON_SQLITE_LOG_FRAMES_H_
