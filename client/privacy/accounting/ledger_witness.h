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

// One record, overwritten in place and on disk before a write returns. The kernel stamps every
// change of a file with a time (ctime) that programs can set only by setting the clock. So a record
// that was restored or copied, with or without its ledger, has another stamp than the ledger
// remembers.
//
// Format, 512 bytes of text: SHA-256 of all that follows (64 hexadecimal digits); a space; a JSON
// object {ledger, generation, change, written_at}; spaces; a newline. Not thread-safe: called
// inside the ledger's write transaction.
class LedgerWitness {
 public:
  struct Record {
    std::string ledger_id;
    int64_t generation = 0;              // changes of the ledger so far
    std::string change;                  // id of the last change
    int64_t written_at_nanoseconds = 0;  // the clock just before the write
    int64_t stamped_at_nanoseconds = 0;  // the kernel's ctime; not part of the content

    bool operator==(const Record&) const = default;
  };

  explicit LedgerWitness(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // - NOT_FOUND: no such file, or empty because a process ended before the first record.
  // - DATA_LOSS: damaged.
  // - UNAVAILABLE: cannot be read.
  absl::StatusOr<Record> Read() const;

  // Writes the first record of a ledger. Sets written_at itself; returns the kernel's stamp.
  // UNAVAILABLE: cannot be made durable.
  absl::StatusOr<int64_t> Create(const Record& record) const;

  // Compare-and-swap of `previous` for `record`, under a lock on this file: a restored ledger
  // beside an open one does not share the open one's lock. Returns the kernel's stamp.
  // - ABORTED: the file does not hold `previous`.
  // - UNAVAILABLE as Create; DATA_LOSS and NOT_FOUND as Read.
  absl::StatusOr<int64_t> Replace(const Record& previous, const Record& record) const;

 private:
  std::string path_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_LEDGER_WITNESS_H_
