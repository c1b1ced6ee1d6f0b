// A batch of private queries of any scheme: order of charging and sending, costs and failures.
#ifndef PRIVATEMAIL_CLIENT_QUERIES_QUERY_BATCH_H_
#define PRIVATEMAIL_CLIENT_QUERIES_QUERY_BATCH_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/queries/scheme.h"
#include "common/base/status_macros.h"
#include "privatemail/bit_source.h"
#include "privatemail/client_limits.h"
#include "privatemail/joint_client.h"
#include "privatemail/joint_scheme.h"
#include "privatemail/ledger.h"
#include "privatemail/transport.h"

namespace privatemail::client {

// The settings of queries beside their connection.
struct QuerySettings {
  std::string state_folder;  // ledger, last release, row tables
  ClientLimits limits;
};

// Shows a warning to the caller.
using WarnFunction = std::function<void(const std::string&)>;

struct NamedTarget {
  std::string name;                 // file, or file and row
  std::string image = {};           // path; empty for a vector
  std::optional<int64_t> row = {};  // of a vector file
  Target target = {};
  bool guessed = false;  // no label was given: classes are ranked by the anchors
  double features_ms = 0;
};

// Opens the ledger in the state folder, which is created if absent. PERMISSION_DENIED: the folder
// cannot be created, or others may enter it.
absl::StatusOr<std::unique_ptr<Ledger>> OpenLedger(const std::string& state_folder);

// The collection's anchors, for clients with these limits.
// RESOURCE_EXHAUSTED, before any is fetched: a query would take more than limits.max_memory.
// FAILED_PRECONDITION, DATA_LOSS: as ReadBuiltCollection.
absl::StatusOr<std::vector<v1::GetAnchorsResponse>> FetchAnchors(
    const Transport& transport, const v1::GetCollectionResponse& collection, Scheme scheme,
    const ClientLimits& limits);

inline constexpr char kNoCoordinates[] =
    "the server sends no coordinates of its anchors: it is older, or cells are being built";

// "1 release", "2 releases".
std::string Counted(uint64_t count, const std::string& singular);

// The rest of a budget: "epsilon 0.9 delta 0.0001", within a batch with the number of queries that
// are charged ahead. Less than 1e-12 of the grant is rounding of sums and shown as 0.
std::string LeftOf(const LedgerEntry& entry);

// One query of a batch. Private: it holds the target.
struct Attempt {
  NamedTarget target;
  bool charged = false;
  double epsilon = 0;     // the cost, once charged
  LedgerEntry ledger;     // after the charge
  absl::Status status;    // the first failure
  bool saved = false;     // for `resend`, until another release is saved
  int64_t not_taken = 0;  // of the last one: charges for later queries, which stay
  double release_ms = 0;
  double round_trip_ms = 0;
};

// Of the answers of a batch, which are read once all are there (MemoryLimit). Their size is chosen
// by the server and the same whatever the target's slot is, so it may end the batch.
inline constexpr char kBatchMemory[] = "memory of the answers of this batch";

double MillisecondsSince(std::chrono::steady_clock::time_point start);

// The first multiple of the interval after `arrived`, not 0, that is not before `now`: a request
// that leaves then does not reveal how long it took to compute.
std::chrono::steady_clock::time_point NextDeparture(std::chrono::steady_clock::time_point arrived,
                                                    std::chrono::steady_clock::time_point now,
                                                    std::chrono::milliseconds interval);

// Whether a failure would meet the next query as well: server, key, quota, collection, or a caller
// who has gone.
bool EndsBatch(const absl::Status& status);

// Releases and sends each target in turn, as one batch of the ledger.
// - Reads no answer: a request that depended on an answer, in content or time, would reveal
//   something about the target.
// - A failed release, or a status with EndsBatch, ends the batch with that outcome. Such a status
//   is public: the server chose it without knowledge of a target.
// Outcome: derives from Attempt. release, send: absl::Status(Outcome*).
template <typename Outcome, typename Release, typename Send>
std::vector<Outcome> SendAll(const std::vector<NamedTarget>& targets, Ledger& ledger,
                             Release release, Send send) {
  std::vector<Outcome> outcomes;
  ledger.StartBatch(std::ssize(targets));
  for (const NamedTarget& target : targets) {
    Outcome& outcome = outcomes.emplace_back();
    outcome.target = target;
    outcome.status = release(&outcome);
    if (!outcome.status.ok()) break;
    outcome.status = send(&outcome);
    if (EndsBatch(outcome.status)) break;
  }
  const int64_t not_taken = ledger.EndBatch();
  if (!outcomes.empty()) outcomes.back().not_taken = not_taken;
  return outcomes;
}

// Runs prepare(bits), which charges the ledger, and fills the outcome's prepared query, time and
// charge. prepare: absl::StatusOr of the outcome's `prepared`.
template <typename Outcome, typename Prepare>
absl::Status ChargeAndPrepare(const std::string& collection_uuid, Ledger& ledger, Prepare prepare,
                              Outcome* outcome) {
  SecureBits bits;
  const auto start = std::chrono::steady_clock::now();
  PM_ASSIGN_OR_RETURN(outcome->prepared, prepare(bits));
  outcome->release_ms = MillisecondsSince(start);
  outcome->charged = true;
  outcome->epsilon = outcome->prepared.state.guarantee.epsilon;
  PM_ASSIGN_OR_RETURN(outcome->ledger, ledger.Show(collection_uuid));
  return absl::OkStatus();
}

// Fills result, or status with its error, by finish(): absl::StatusOr of the outcome's `result`.
template <typename Outcome, typename Finish>
void ReadResult(Outcome* outcome, Finish finish) {
  if (!outcome->status.ok()) return;
  auto result = finish();
  outcome->status = result.status();
  if (result.ok()) outcome->result = *std::move(result);
}

// Refuses a batch that the budget cannot pay as a whole, before its first charge.
// FAILED_PRECONDITION: the collection has no budget. RESOURCE_EXHAUSTED: too little is left.
absl::Status CheckAffordable(const std::string& collection, const LedgerEntry& entry,
                             size_t queries, const Budget& each);

template <typename Outcome>
std::vector<const Attempt*> AttemptsOf(const std::vector<Outcome>& outcomes) {
  std::vector<const Attempt*> attempts;
  for (const Outcome& outcome : outcomes) attempts.push_back(&outcome);
  return attempts;
}

// The first failure with the cost of all failures, the command that sends the last release again
// (`resend`), and how many of the `queries` were not sent. OK: all were answered.
absl::Status FailureOf(const std::vector<const Attempt*>& attempts, size_t queries,
                       const std::string& resend);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_QUERIES_QUERY_BATCH_H_
