// A durable record of how much of a write-ahead log was synced.
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
//   mark is synced (Clear).
// A damaged or missing mark claims nothing.
class WalMark {
 public:
  explicit WalMark(std::string database_path) : path_(std::move(database_path)) {}

  // Records that the first `frames` frames of the current log are synced. If the disk is full, the
  // previous mark stays.
  void Set(int64_t frames) const;

  // Writes and syncs an empty mark. Errors: absl::ErrnoToStatus.
  absl::Status Clear() const;

  // Call before the database is opened. DATA_LOSS naming the log: it is missing, or less of it is
  // intact than the mark claims.
  absl::Status Check() const;

 private:
  const std::string path_;
};

}  // namespace privatemail::sqlite

#endif  // PRIVATEMAIL_COMMON_SQLITE_WAL_MARK_H_
