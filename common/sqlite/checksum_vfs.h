// A SQLite VFS that appends a checksum to each page (checksums.h) and verifies it on every
// read. SQLite itself only detects damage to its structure.
#ifndef PRIVATEMAIL_COMMON_SQLITE_CHECKSUM_VFS_H_
#define PRIVATEMAIL_COMMON_SQLITE_CHECKSUM_VFS_H_

#include <sqlite3.h>

namespace privatemail::sqlite {

// Registers the VFS on top of the default one and returns its name for sqlite3_open_v2.
// - A page that does not match fails the statement with SQLITE_IOERR_DATA. In the write-ahead log
//   SQLite's own frame checksums are verified; pages get theirs when they move to the file.
// - SQLITE_FULL is also returned for quotas and file size limits, which the default VFS reports as
//   I/O errors.
const char* ChecksumVfsName();

// The log flag of a database of this VFS, which lets it remember its log; see wal_mark.h for what
// it detects and why it never raises a false alarm.
// UseLogFlag: from now on this connection sets the flag, and syncs it, after the first sync of the
// log. No other connection may write.
void UseLogFlag(sqlite3* database);
// Call after the whole log was moved into the file and before the log is emptied.
int ClearLogFlag(sqlite3* database);

}  // namespace privatemail::sqlite

#endif  // PRIVATEMAIL_COMMON_SQLITE_CHECKSUM_VFS_H_
