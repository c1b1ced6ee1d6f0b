// The checksum at the end of each page of a database file, and the log flag in that of the first.
#ifndef PRIVATEMAIL_COMMON_SQLITE_PAGE_CHECKSUM_H_
#define PRIVATEMAIL_COMMON_SQLITE_PAGE_CHECKSUM_H_

#include <array>
#include <cstdint>
#include <optional>

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

}  // namespace privatemail::sqlite

#endif  // PRIVATEMAIL_COMMON_SQLITE_PAGE_CHECKSUM_H_
