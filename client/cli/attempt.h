// One private query of a batch, whatever the scheme: what it has cost and how it went. Private: it
// holds the target.
#ifndef PRIVATEMAIL_CLIENT_CLI_ATTEMPT_H_
#define PRIVATEMAIL_CLIENT_CLI_ATTEMPT_H_

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/query_targets.h"
#include "privatemail/ledger.h"

namespace privatemail::client::cli {

struct Attempt {
  NamedTarget target;
  bool charged = false;
  double epsilon = 0;   // then what it cost
  LedgerEntry ledger;   // after the charge
  absl::Status status;  // the first thing that went wrong
  bool kept = false;    // `resend` finds it, unless another was kept since
  double release_ms = 0;
  double round_trip_ms = 0;
};

double MillisecondsSince(std::chrono::steady_clock::time_point start);

// Whether a failure would meet the next query as well.
bool EndsBatch(const absl::Status& status);

// Releases each target, keeps what is about to leave, and sends it, all in `release` and `send`,
// and looks at no answer: a client that stopped, or took its time, over an answer would tell the
// server by its next request what the answer had spoilt. Only where there is no answer does it end,
// with the failure as the last outcome, before the rest of the budget is spent for nothing: when a
// query cannot be prepared or kept, the server not be reached, or when it refuses what it would
// refuse of the next one, too (a limit, the key, the state of the collection). That depends on the
// status alone, which the server chose without knowing any target and would have chosen for every
// one, so that ending tells it nothing.
//
// Outcome: an Attempt. release, send: absl::Status(Outcome*).
template <typename Outcome, typename Release, typename Send>
std::vector<Outcome> SendAll(const std::vector<NamedTarget>& targets, Release release, Send send) {
  std::vector<Outcome> outcomes;
  for (const NamedTarget& target : targets) {
    Outcome& outcome = outcomes.emplace_back();
    outcome.target = target;
    outcome.status = release(&outcome);
    if (!outcome.status.ok()) break;
    outcome.status = send(&outcome);
    if (EndsBatch(outcome.status)) break;
  }
  return outcomes;
}

// All queries or none: what a batch of `queries` that cost `each` cannot afford as a whole is
// refused before its first charge. FAILED_PRECONDITION: the collection has no budget.
// RESOURCE_EXHAUSTED.
absl::Status CheckAffordable(const std::string& collection, const LedgerEntry& entry,
                             size_t queries, const Budget& each);

template <typename Outcome>
std::vector<const Attempt*> AttemptsOf(const std::vector<Outcome>& outcomes) {
  std::vector<const Attempt*> attempts;
  for (const Outcome& outcome : outcomes) attempts.push_back(&outcome);
  return attempts;
}

// The first failure, which stands for all; what the failures have cost, how the last release is
// sent again for nothing (`resend`: "privatemail resend ..."), and how many of the `queries` asked
// for were not sent and cost nothing. OK: all were answered.
absl::Status FailureOf(const std::vector<const Attempt*>& attempts, size_t queries,
                       const std::string& resend);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_ATTEMPT_H_
