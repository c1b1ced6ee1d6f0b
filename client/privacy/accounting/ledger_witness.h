// The witness file of a ledger, which detects that the ledger was restored, copied or rolled back.
// Not installed.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_LEDGER_WITNESS_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_LEDGER_WITNESS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace privatemail::client {

// One record, on disk before a write returns. Every write makes a new file that takes the place of
// the one before, whose content is erased for those who hold a hard link to it. A record names the
// inode and the birth time of its own file. The kernel sets both, and neither a mode, an owner, a
// time nor a name changes them, but a record that was restored or copied, also over the file of a
// later one, is in another file than it names. On file systems without birth times the inode
// decides alone.
//
// Format, 512 bytes of text: SHA-256 of all that follows (64 hexadecimal digits); a space; a JSON
// object {ledger, generation, change, inode, born}; spaces; a newline. Not thread-safe: called
// inside the ledger's write transaction.
class LedgerWitness {
 public:
  struct Record {
    std::string ledger_id;
    int64_t generation = 0;    // changes of the ledger so far
    std::string change;        // id of the last change
    bool is_original = false;  // not part of the content: whether the file is the one it names
    int64_t stamp = 0;         // of a record that names no file, as once written: the file's ctime

    bool operator==(const Record&) const = default;
  };

  explicit LedgerWitness(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // - NOT_FOUND: no such file, or empty because a process ended before the first record.
  // - DATA_LOSS: damaged.
  // - UNAVAILABLE: cannot be read.
  absl::StatusOr<Record> Read() const;

  // Writes a ledger's first record. UNAVAILABLE: cannot be made durable.
  absl::Status Create(const Record& record) const;

  // Compare-and-swap of `previous` for `record`, under a lock on this file: a restored ledger
  // beside an open one does not share the open one's lock.
  // - ABORTED: the file does not hold `previous`.
  // - UNAVAILABLE as Create; DATA_LOSS and NOT_FOUND as Read.
  absl::Status Replace(const Record& previous, const Record& record) const;

 private:
  std::string path_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_LEDGER_WITNESS_H_
