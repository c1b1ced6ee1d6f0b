#include "client/queries/query_batch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/schemes/published_collection.h"
#include "client/schemes/query_limits.h"
#include "common/embedding/offered_schemes.h"
#include "common/wire/parameters_proto.h"
#include "privatemail/state_folder.h"

namespace privatemail::client {
namespace {

bool Failed(const Attempt* attempt) { return !attempt->status.ok(); }

// Whether the ledger failed in a change, which may count, and be of charges for later queries, too.
bool MayHaveCharged(const Attempt& attempt) {
  return !attempt.charged &&
         (absl::IsUnavailable(attempt.status) || absl::IsDataLoss(attempt.status));
}

bool FailedAndCharged(const Attempt* attempt) { return Failed(attempt) && attempt->charged; }

// Names no class: users paste error messages into reports.
std::string Cost(const std::vector<const Attempt*>& attempts, size_t queries,
                 const std::string& resend) {
  const auto charged = std::count_if(attempts.begin(), attempts.end(), FailedAndCharged);
  if (charged == 0) return "";
  const auto first = std::find_if(attempts.begin(), attempts.end(), FailedAndCharged);
  const std::string cost = absl::StrCat("; epsilon ", (*first)->epsilon, " was spent for ",
                                        charged == 1 ? "it" : absl::StrCat("each of ", charged));
  const Attempt* last = attempts.back();
  if (!Failed(last) || !last->saved) return cost;
  return absl::StrCat(cost, "; `", resend, "` sends the ",
                      queries == 1 ? "same release" : "last of these releases",
                      " again at no cost");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ledger>> OpenLedger(const std::string& state_folder) {
  PM_RETURN_IF_ERROR(CreateStateFolder(state_folder));
  return Ledger::Open(LedgerPath(state_folder));
}

absl::StatusOr<std::vector<v1::GetAnchorsResponse>> FetchAnchors(
    const Transport& transport, const v1::GetCollectionResponse& collection, Scheme scheme,
    const ClientLimits& limits) {
  PM_ASSIGN_OR_RETURN(const PublicParameters parameters, ReadBuiltCollection(collection));
  PM_RETURN_IF_ERROR(scheme == Scheme::kCells ? CheckHasCells(collection.name(), parameters)
                                              : CheckHasClasses(collection.name(), parameters));
  const double bytes =
      scheme == Scheme::kCells ? CellQueryMemory(parameters) : JointQueryMemory(parameters);
  PM_RETURN_IF_ERROR(CheckQueryMemory(parameters, bytes, limits));
  return transport.GetAnchors(collection.name(), collection.fingerprint());
}

std::string Counted(uint64_t count, const std::string& singular) {
  return absl::StrCat(count, " ", singular, count == 1 ? "" : "s");
}

std::string LeftOf(const LedgerEntry& entry) {
  const Budget granted = entry.granted.value_or(Budget{});
  const auto rounded = [](double left, double whole) { return left <= 1e-12 * whole ? 0 : left; };
  return absl::StrCat("epsilon ", rounded(entry.left().epsilon, granted.epsilon), " delta ",
                      rounded(entry.left().delta, granted.delta),
                      entry.charged_ahead > 0
                          ? absl::StrCat(", with ", entry.charged_ahead,
                                         entry.charged_ahead == 1 ? " query" : " queries",
                                         " to come charged already")
                          : "");
}

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

std::chrono::steady_clock::time_point NextDeparture(std::chrono::steady_clock::time_point arrived,
                                                    std::chrono::steady_clock::time_point now,
                                                    std::chrono::milliseconds interval) {
  const std::chrono::nanoseconds step = interval;
  const auto past = now - arrived;
  return arrived + (past <= step ? 1 : (past + step - std::chrono::nanoseconds(1)) / step) * step;
}

bool EndsBatch(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status) || absl::IsUnauthenticated(status) ||
         absl::IsPermissionDenied(status) || absl::IsFailedPrecondition(status) ||
         absl::IsAborted(status) || absl::IsCancelled(status);
}

absl::Status CheckAffordable(const std::string& collection, const LedgerEntry& entry,
                             size_t queries, const Budget& each) {
  if (!entry.granted.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no privacy budget is set for collection ", collection,
        "; set one with: privatemail budget set ", collection, " --epsilon E --delta D"));
  }
  const auto count = static_cast<double>(queries);
  const Budget need{count * each.epsilon, count * each.delta};
  // The ledger itself refuses a single query. The cost of a batch in mu is unknown before its
  // noise.
  if (queries == 1 || entry.accounting == Accounting::kGaussian || entry.Affords(need)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("privacy budget exhausted: ", queries, " queries of epsilon ", each.epsilon,
                   " delta ", each.delta, " need epsilon ", need.epsilon, " delta ", need.delta,
                   ", left ", LeftOf(entry), "; nothing was spent"));
}

absl::Status FailureOf(const std::vector<const Attempt*>& attempts, size_t queries,
                       const std::string& resend) {
  const auto first = std::find_if(attempts.begin(), attempts.end(), Failed);
  if (first == attempts.end()) return absl::OkStatus();
  const std::string cost = Cost(attempts, queries, resend);
  const absl::Status& status = (*first)->status;
  if (queries == 1) return absl::Status(status.code(), absl::StrCat(status.message(), cost));
  const auto failed = std::count_if(attempts.begin(), attempts.end(), Failed);
  const size_t unsent = queries - attempts.size();
  const int64_t lost = attempts.back()->not_taken;
  std::string cost_of_unsent = " and cost nothing";
  if (lost > 0) {
    const char* were = lost == 1 ? "was" : "were";
    cost_of_unsent = absl::StrCat("; ", Counted(lost, "release"), " that ", were, " charged ", were,
                                  " not used");
  } else if (MayHaveCharged(*attempts.back())) {
    cost_of_unsent = "";
  }
  return absl::Status(
      status.code(),
      absl::StrCat(failed, " of ", queries, " queries failed; the first, ", (*first)->target.name,
                   ": ", status.message(), cost,
                   unsent == 0 ? ""
                               : absl::StrCat("; ", unsent, " more ", unsent == 1 ? "was" : "were",
                                              " not sent", cost_of_unsent)));
}

}  // namespace privatemail::client
