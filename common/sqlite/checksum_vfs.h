// A layer below SQLite that ends each page of a database file with a checksum and checks it
// whenever the page is read: SQLite itself notices only what breaks its structure, and would hand
// out a number with a flipped bit.
#ifndef PRIVATEMAIL_COMMON_SQLITE_CHECKED_PAGES_H_
#define PRIVATEMAIL_COMMON_SQLITE_CHECKED_PAGES_H_

namespace privatemail::sqlite {

// Bytes at the end of a page that are to be reserved (SQLITE_FCNTL_RESERVE_BYTES) before the first
// table of a new file is made: the first 8 of SHA-256 over the bytes before them, each with
// exclusive or of the page's number (from 0, 64 bits, big endian), so that a page elsewhere matches
// no more.
inline constexpr int kPageChecksumBytes = 8;

// The name by which sqlite3_open_v2 finds the layer. It stands on the default VFS. A page that does
// not match ends the statement with SQLITE_IOERR_DATA, in the file and in the log (-wal), where
// each frame has a checksum of SQLite's own; pages get theirs when they leave it for the file. A
// file that was made without reserved bytes stays readable and is not checked.
//
// Whatever the system refuses for want of space is SQLITE_FULL: below, only a page for which the
// disk has no block left is, and neither a quota nor the largest file that is allowed.
const char* ChecksumVfsName();

}  // namespace privatemail::sqlite

#endif  // PRIVATEMAIL_COMMON_SQLITE_CHECKED_PAGES_H_
