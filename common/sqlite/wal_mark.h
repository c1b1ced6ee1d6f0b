// Durable records of a write-ahead log: how much of it was synced, and that there is one.
#ifndef PRIVATEMAIL_COMMON_SQLITE_WAL_MARK_H_
#define PRIVATEMAIL_COMMON_SQLITE_WAL_MARK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace privatemail::sqlite {

// Detects lost frames of a log. After a crash a log may end anywhere, so SQLite takes damage for
// the end of the log and silently drops the acknowledged transactions after it. The file PATH-mark
// therefore holds the number of frames synced at the end of the last transaction. It is written
// after each transaction without a sync of its own:
// - A killed program leaves the mark of its last transaction.
// - After a power failure the mark may be an older one of the same log, which claims less. It is
//   never one of an earlier log: before a log restarts, its pages are in the database and an empty
//   mark is synced (ClearWalMark).
// A damaged or missing mark claims nothing. So that the log cannot vanish together with its mark,
// the database file has a log flag (checksums.h): if it is set, a log that is not empty must
// exist. No power loss or kill between two of these steps breaks that:
//   1. The log with its header, and its name, are synced (by SQLite, in the first commit).
//   2. The flag is set and synced; only then is the commit acknowledged.
//   3. A checkpoint moves the whole log into the file and syncs it.
//   4. The flag is cleared and synced.
//   5. The log is emptied.
// - Never a false alarm: the flag is only on disk between 1 and 5, when the log is there.
// - Never a hidden loss: without the flag no commit of the log was acknowledged, or all are moved.
// - A first page that a power loss left in parts matches with the flag neither set nor cleared. Its
//   whole is in the log; without the log, reading it is DATA_LOSS.
// A log that restarts in place keeps the flag.

// Records that the first `frames` frames of the current log are synced. If the disk is full, the
// previous mark stays.
void SetWalMark(const std::string& database_path, int64_t frames);

// Writes and syncs an empty mark. Errors: absl::ErrnoToStatus.
absl::Status ClearWalMark(const std::string& database_path);

// Call before the database is opened. DATA_LOSS naming the log: it is missing, or less of it is
// intact than the mark claims.
absl::Status CheckWal(const std::string& database_path);

}  // namespace privatemail::sqlite

#endif  // PRIVATEMAIL_COMMON_SQLITE_WAL_MARK_H_
