// The stored state of a ledger: its tables, and the check of the state against the witness. Called
// by Ledger inside a transaction; errors as sqlite::Database. Not installed.
//
// Protocol. Every change has an id of its own, 128 bits from the secure generator, and is made in
// two steps, each durable before the next:
//   1. committed: in one transaction the change, its id and the id of the change before it;
//   2. witnessed: the witness, which named the change before, names this one (ledger_witness.h).
// Nothing is released before step 2, after which the ledger must still hold the change.
//
// Claim: no copy of the ledger refunds a release. Proof. A ledger is accepted in two cases, in
// which the witness is in the file that it names:
//   witnessed      the witness names its last change;
//   not witnessed  the witness names the change before its last.
// Let c be the last change that was released, so that the witness named c at some time. A witness
// that was restored from a copy is in another file than it names, and one that was kept under
// another name was erased when c was witnessed. From then
// on it names c or a change that was made on top of a ledger that held c: step 2 goes from the id
// of a change's predecessor to that of the change and no other way, atomically under a lock on the
// witness. An id is drawn once, so every ledger in which the witness's id is that of the last
// change, or of the one before, holds c:
// - A copy from before c: the witness names neither its last change nor the one before.
// - A copy from between steps 1 and 2 of another change p, restored after c was made instead of
//   p, both on top of the same change a: p's predecessor is a, the witness names c. A comparison of
//   counts alone would confuse the two.
// - A copy from before p, restored while p is committed and not witnessed: it is accepted, and p
//   is lost; but nothing of p was released, and when the process that made p goes on it finds the
//   witness or its own ledger changed, and fails.
//
// A process that is killed after it put a new witness in place and before it erased the former one
// leaves that to anyone who holds a hard link to it (ledger.h).
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_LEDGER_STATE_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_LEDGER_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/privacy/accounting/ledger_witness.h"
#include "common/sqlite/sqlite.h"
#include "privatemail/ledger.h"

namespace privatemail::client {

struct LedgerState {
  std::string id;
  int64_t generation = 0;       // changes so far; charges made together are one
  std::string change;           // id of the last change
  std::string previous_change;  // id of the one before
  // The ctime of a witness that names no file, as once written, to this generation and to the one
  // before.
  int64_t witness_stamp = 0;
  int64_t previous_stamp = 0;
};

enum class LedgerMatch { kWitnessed, kNotWitnessed, kMismatch };

// The case above that holds; kMismatch: none.
LedgerMatch CompareWithWitness(const LedgerState& state, const LedgerWitness::Record& record);

// Random id of a change or of a ledger: 32 hexadecimal digits. UNAVAILABLE: no random bits.
absl::StatusOr<std::string> NewLedgerId();

// False: an empty file. Tables of the version before get what they lack. FAILED_PRECONDITION: the
// tables of another version or program.
absl::StatusOr<bool> HasLedgerTables(sqlite::Database& database);
absl::Status CreateLedgerTables(sqlite::Database& database);

absl::StatusOr<LedgerState> ReadLedgerState(sqlite::Database& database);
absl::Status WriteLedgerState(sqlite::Database& database, const LedgerState& state);

absl::Status WriteLedgerChange(sqlite::Database& database, const LedgerChange& change,
                               const std::string& id);
absl::StatusOr<bool> HasLedgerChange(sqlite::Database& database, const std::string& id);
absl::StatusOr<LedgerEntry> ReadLedgerEntry(sqlite::Database& database,
                                            const std::string& collection);
// Names of the operators whom the collection or the server belongs to. Both empty: of all.
absl::StatusOr<std::vector<std::string>> ReadOperatorNames(sqlite::Database& database,
                                                           const std::string& collection,
                                                           const std::string& server);
// The sum over the operator's collections, as if `collection` and `server` were its own; or empty.
absl::StatusOr<LedgerEntry> ReadOperatorEntry(sqlite::Database& database, const std::string& name,
                                              const std::string& collection,
                                              const std::string& server);
// In the order of their first grant or charge.
absl::StatusOr<std::vector<std::string>> ReadCollections(sqlite::Database& database);
// With the grants of the collection's operators, oldest first.
absl::StatusOr<std::vector<LedgerChange>> ReadLedgerChanges(sqlite::Database& database,
                                                            const std::string& collection);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_LEDGER_STATE_H_
