// The rules of a batch of targets: what it costs, when it ends, and what is said of failures.
#ifndef PRIVATEMAIL_CLIENT_SEARCH_BATCH_H_
#define PRIVATEMAIL_CLIENT_SEARCH_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "privatemail/ledger.h"
#include "privatemail/search_request.h"
#include "privatemail/search_result.h"

namespace privatemail::client {

// Opens the ledger in the state folder, which is created if absent. PERMISSION_DENIED: the folder
// cannot be created, or others may enter it.
absl::StatusOr<std::unique_ptr<Ledger>> OpenLedger(const std::string& state_folder);

// For a collection of no operator: warns if the ledger has any. Errors of Ledger::HasOperators.
absl::Status WarnIfUncounted(Ledger& ledger, const WarnFunction& warn);

// FAILED_PRECONDITION: nothing was granted.
absl::Status CheckGranted(const LedgerEntry& entry);

// Refuses releases that the budget cannot pay as a whole, before the first charge.
// whose: SumOf an operator, or empty. RESOURCE_EXHAUSTED: too little is left.
absl::Status CheckAffordable(const LedgerEntry& entry, size_t targets, const Budget& each,
                             absl::string_view whose = "");

// The rest of a budget: "epsilon 0.9 delta 0.0001", within a batch with the number of releases that
// are charged ahead. Less than 1e-12 of the grant is rounding of sums and shown as 0.
std::string LeftOf(const LedgerEntry& entry);

// Whether a failure would meet the next message as well. A malformed answer and an error inside the
// server may concern one message alone.
bool EndsBatch(const absl::Status& status);

// The first failure, and what the failures cost. OK: all targets were answered. Names no class:
// users paste error messages into reports.
// results: of the targets that were tried, in order.
// targets: of the request. can_resend: the last release was saved. not_taken: charges for releases
// that were not made.
absl::Status FailureOf(const std::vector<SearchResult>& results, size_t targets, bool can_resend,
                       int64_t not_taken);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SEARCH_BATCH_H_
