// Whether a ledger and its witness belong together. Called by Ledger inside a transaction. Not
// installed.
//
// Every change has a name of its own, 128 bits from the secure generator, and is made in three
// steps, each durable before the next:
//   1. made: in one transaction the change, its name and the name of the change before it;
//   2. witnessed: the witness, which named the change before, names this one (ledger_witness.h);
//   3. told: the ledger remembers the kernel's stamp of step 2.
// Nothing is released before step 3, after which the ledger must still hold the change.
//
// Why no copy of the ledger refunds what was released. A ledger is accepted in three cases:
//   intact         it was told a stamp, the witness bears this stamp and names its last change;
//   not witnessed  it was not told, and the witness names the change before its last and bears the
//                  stamp that this one was told;
//   not told       it was not told, and the witness names its last change itself.
// So the witness names the last change of an accepted ledger or the one before that. Let c be the
// last change that was released, so that the witness named c at some time, and let the witness
// never be put back (its stamp tells: any write or copy of it is stamped anew). From then on it
// names c or a change that was made on top of a ledger that held c: step 2 goes from the name of a
// change's predecessor to that of the change and no other way, in one piece under a lock on the
// witness. A name is drawn once, so whichever ledger the witness's name is found in as its last
// change, or as the one before, holds c:
// - A copy from before c: its last change, and the one before, are not what the witness names.
// - A copy from between steps 1 and 2 of another change p, put back after c was made in its stead,
//   both on top of the same change a: p's predecessor is a, the witness names c. Counting alone
//   would take them for each other.
// - A copy from before p put back while p is made and not witnessed: it is intact, and p is lost;
//   but nothing of p was released, and when its maker goes on it finds the witness or its own
//   ledger changed, and fails.
// - A copy from between steps 2 and 3 of c itself, put back before another change: it holds c.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_LEDGER_CHAIN_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_LEDGER_CHAIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/privacy/accounting/ledger_rows.h"
#include "privatemail/ledger_witness.h"

namespace privatemail::client {

// The name of a change or of a ledger: 32 hexadecimal digits. UNAVAILABLE: no random bits.
absl::StatusOr<std::string> NewLedgerName();

enum class LedgerMatch { kIntact, kNotWitnessed, kNotTold, kForeign };

// Of the cases above; foreign: none of them. A ledger that was brought up from a version without
// names can be intact or not witnessed alone, which its stamps decide.
LedgerMatch Compare(const LedgerState& state, const LedgerWitness::Record& record);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_ACCOUNTING_LEDGER_CHAIN_H_
