// A SQLite VFS that appends a checksum to each page and verifies it on every read. SQLite itself
// only detects damage to its structure.
#ifndef PRIVATEMAIL_COMMON_SQLITE_CHECKSUM_VFS_H_
#define PRIVATEMAIL_COMMON_SQLITE_CHECKSUM_VFS_H_

namespace privatemail::sqlite {

// Bytes to reserve at the end of each page (SQLITE_FCNTL_RESERVE_BYTES) before the first table of a
// new file is created. They hold the first 8 bytes of SHA-256 over the rest of the page, XORed with
// the page number (from 0, 64 bits, big endian), so that a misplaced page does not match.
inline constexpr int kPageChecksumBytes = 8;

// Registers the VFS on top of the default one and returns its name for sqlite3_open_v2.
// - A page that does not match fails the statement with SQLITE_IOERR_DATA. In the write-ahead log
//   SQLite's own frame checksums are verified; pages get theirs when they move to the file.
// - A file without reserved bytes stays readable and is not verified.
// - SQLITE_FULL is also returned for quotas and file size limits, which the default VFS reports as
//   I/O errors.
const char* ChecksumVfsName();

}  // namespace privatemail::sqlite

#endif  // PRIVATEMAIL_COMMON_SQLITE_CHECKSUM_VFS_H_
