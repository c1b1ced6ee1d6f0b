// The file beside a ledger by which the ledger notices that it was restored, copied or rolled back.
#ifndef PRIVATEMAIL_LEDGER_WITNESS_H_
#define PRIVATEMAIL_LEDGER_WITNESS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace privatemail::client {

// One record, overwritten in place, on disk before Write returns. The kernel stamps every change of
// a file with a time (ctime) that no program can set but by setting the clock, so a record that was
// restored or copied, whole or together with its ledger, carries another stamp than the ledger
// remembers.
//
// Format, 512 bytes of text: 64 hexadecimal digits, the SHA-256 of all that follows; a space; a
// JSON object {format: 3, ledger, generation, change, written_at}; spaces; a newline. Format 2 had
// no change, and is read. Not thread-safe: the ledger calls it inside its own write transaction.
class LedgerWitness {
 public:
  struct Record {
    std::string ledger_id;
    int64_t generation = 0;              // changes of the ledger so far
    std::string change;                  // the name of the last one; empty in format 2
    int64_t written_at_nanoseconds = 0;  // the clock just before the write
    int64_t stamped_at_nanoseconds = 0;  // the kernel's stamp; not part of the file's content

    bool operator==(const Record&) const = default;
  };

  explicit LedgerWitness(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // NOT_FOUND: there is no such file, or it is empty, as a process leaves it that ended before the
  // first record. DATA_LOSS: it is damaged. UNAVAILABLE: it cannot be read.
  absl::StatusOr<Record> Read() const;

  // The first record of a ledger. Returns the kernel's stamp of this write; sets written_at itself.
  // UNAVAILABLE: it cannot be made durable.
  absl::StatusOr<int64_t> Begin(const Record& record) const;

  // The same for a record that takes the place of `former`, in one piece: under a lock on the file,
  // since a ledger that was put back beside one that is open does not share its lock. ABORTED:
  // `former` is not what is there. DATA_LOSS and NOT_FOUND as Read.
  absl::StatusOr<int64_t> Replace(const Record& former, const Record& record) const;

 private:
  std::string path_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_LEDGER_WITNESS_H_
