// Checksums of database files: our own at the end of each page, with the log flag in that of the
// first, and SQLite's of the frames of its write-ahead log.
#ifndef PRIVATEMAIL_COMMON_SQLITE_CHECKSUMS_H_
#define PRIVATEMAIL_COMMON_SQLITE_CHECKSUMS_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"

namespace privatemail::sqlite {

// Bytes to reserve at the end of each page (SQLITE_FCNTL_RESERVE_BYTES) before the first table of a
// new file is created. They hold the first 8 bytes of SHA-256 over the rest of the page, XORed with
// the page number (from 0, 64 bits, big endian), so that a misplaced page does not match.
inline constexpr int kPageChecksumBytes = 8;
using PageChecksum = std::array<unsigned char, kPageChecksumBytes>;

// The header at the beginning of a database file.
inline constexpr int kDatabaseHeaderBytes = 100;

// Whether an access is to a whole page, as SQLite's are except for the header.
bool IsPage(int bytes, int64_t offset);
// As the header states it; 0: the header is damaged.
int PageBytesOf(const unsigned char* header);

PageChecksum ChecksumOfPage(const unsigned char* page, int bytes, int64_t offset);

// The log flag is set when the write-ahead log holds synced frames that the file may lack. It is
// the last byte of the first page's checksum, complemented: one byte, so that no power loss leaves
// half of it.
inline unsigned char WithLogFlag(unsigned char last_byte) { return last_byte ^ 0xff; }

// Whether a first page has the log flag; nullopt: it does not match its checksum either way.
std::optional<bool> ReadLogFlag(const unsigned char* page, int bytes);

// Whether a page matches its checksum, the first page with or without the log flag.
bool PageMatches(const unsigned char* page, int bytes, int64_t offset);

// The write-ahead log (-wal): https://sqlite.org/fileformat2.html, section 4. SQLite verifies the
// checksums of its frames only when it opens an existing log, and takes the first mismatch for the
// end of the log.
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

#endif  // PRIVATEMAIL_COMMON_SQLITE_CHECKSUMS_H_
