// How much of a write-ahead log must be there.
#ifndef PRIVATEMAIL_COMMON_SQLITE_LOG_MARK_H_
#define PRIVATEMAIL_COMMON_SQLITE_LOG_MARK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace privatemail::sqlite {

// A log that was left behind by a program which ended all at once may end anywhere: in frames that
// were never synced. SQLite therefore takes damage for the end of the log, and what was
// acknowledged after it would be gone without a word. So the file PATH-mark says how many frames
// were synced when the last transaction ended. It is written after each, which costs no sync of its
// own:
//
// - A program that is killed leaves the mark of its last transaction.
// - After a loss of power the mark may be an earlier one of the same log, which claims less, but
//   never one of an earlier log: before a log begins anew its pages are in the database, and the
//   mark that claims nothing is synced (Clear).
//
// A mark that is damaged itself, or not there, claims nothing.
class WalMark {
 public:
  explicit WalMark(std::string database_path) : path_(std::move(database_path)) {}

  // Claims the first `frames` frames of the log as it is now: after they were synced. Where there
  // is no room for it, the former mark stays.
  void Set(int64_t frames) const;

  // Claims nothing, durably. Errors as absl::ErrnoToStatus.
  absl::Status Clear() const;

  // Before the database is opened. DATA_LOSS naming the log: less of it is intact than the mark
  // claims, or it is not there.
  absl::Status Check() const;

 private:
  const std::string path_;
};

}  // namespace privatemail::sqlite

#endif  // PRIVATEMAIL_COMMON_SQLITE_LOG_MARK_H_
