#include "client/search/batch.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "privatemail/state_folder.h"

namespace privatemail::client {
namespace {

bool HasFailed(const SearchResult& result) { return !result.status.ok(); }

bool HasFailedCharged(const SearchResult& result) {
  return HasFailed(result) && result.guarantee.has_value();
}

// Whether the ledger failed in a change, which may count and may hold charges for later targets.
bool MayHaveCharged(const SearchResult& result) {
  return !result.guarantee.has_value() &&
         (absl::IsUnavailable(result.status) || absl::IsDataLoss(result.status));
}

std::string CostOf(const std::vector<SearchResult>& results, size_t targets, bool can_resend) {
  const auto charged = std::count_if(results.begin(), results.end(), HasFailedCharged);
  if (charged == 0) return "";
  const auto first = std::find_if(results.begin(), results.end(), HasFailedCharged);
  std::string cost = absl::StrCat("; epsilon ", first->guarantee->epsilon, " was spent for ",
                                  charged == 1 ? "it" : absl::StrCat("each of ", charged));
  if (can_resend && HasFailed(results.back())) {
    absl::StrAppend(&cost, "; `resend` sends the ",
                    targets == 1 ? "same release" : "last of these releases", " again at no cost");
  }
  return cost;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ledger>> OpenLedger(const std::string& state_folder) {
  PM_RETURN_IF_ERROR(CreateStateFolder(state_folder));
  return Ledger::Open(LedgerPath(state_folder));
}

absl::Status WarnIfUncounted(Ledger& ledger, const WarnFunction& warn) {
  PM_ASSIGN_OR_RETURN(const bool has_operators, ledger.HasOperators());
  if (has_operators) {
    warn(
        "neither this collection nor its server, as it is addressed or trusted, belongs to an "
        "operator of the ledger, so no sum counts its releases: `budget set --operator NAME` adds "
        "the server to one");
  }
  return absl::OkStatus();
}

absl::Status CheckGranted(const LedgerEntry& entry) {
  if (entry.granted.has_value()) return absl::OkStatus();
  return FieldError(absl::StatusCode::kFailedPrecondition, "budget",
                    "granted to the collection before it is searched", "absent");
}

absl::Status CheckAffordable(const LedgerEntry& entry, size_t targets, const Budget& each,
                             absl::string_view whose) {
  const auto count = static_cast<double>(targets);
  const Budget need{count * each.epsilon, count * each.delta};
  // The cost in mu is unknown before the noise, and what is not finite is refused as such.
  if (entry.accounting == Accounting::kGaussian || entry.Affords(need) ||
      !std::isfinite(need.epsilon + need.delta)) {
    return absl::OkStatus();
  }
  return FieldError(
      absl::StatusCode::kResourceExhausted, "budget",
      absl::StrCat("left for ", targets, targets == 1 ? " release" : " releases", " of epsilon ",
                   each.epsilon, " delta ", each.delta, ", in all epsilon ", need.epsilon,
                   " delta ", need.delta, whose.empty() ? "" : ", ", whose),
      absl::StrCat("exhausted: left ", LeftOf(entry), "; nothing was spent"));
}

std::string LeftOf(const LedgerEntry& entry) {
  const Budget granted = entry.granted.value_or(Budget{});
  const auto rounded = [](double left, double whole) { return left <= 1e-12 * whole ? 0 : left; };
  std::string left = absl::StrCat("epsilon ", rounded(entry.left().epsilon, granted.epsilon),
                                  " delta ", rounded(entry.left().delta, granted.delta));
  if (entry.charged_ahead > 0) {
    absl::StrAppend(&left, ", with ", entry.charged_ahead,
                    entry.charged_ahead == 1 ? " query" : " queries", " to come charged already");
  }
  return left;
}

bool EndsBatch(const absl::Status& status) {
  return !status.ok() && !absl::IsDataLoss(status) && !absl::IsInternal(status) &&
         !absl::IsUnknown(status);
}

absl::Status FailureOf(const std::vector<SearchResult>& results, size_t targets, bool can_resend,
                       int64_t not_taken) {
  const auto first = std::find_if(results.begin(), results.end(), HasFailed);
  if (first == results.end()) return absl::OkStatus();
  const std::string cost = CostOf(results, targets, can_resend);
  if (targets == 1) return WithNote(first->status, cost);
  const auto failed = std::count_if(results.begin(), results.end(), HasFailed);
  std::string end = cost;
  if (const size_t unsent = targets - results.size(); unsent > 0) {
    absl::StrAppend(&end, "; ", unsent, " more ", unsent == 1 ? "was" : "were", " not sent");
    if (not_taken > 0) {
      absl::StrAppend(&end, "; ", not_taken,
                      not_taken == 1 ? " release that was charged was not used"
                                     : " releases that were charged were not used");
    } else if (!MayHaveCharged(results.back())) {
      absl::StrAppend(&end, " and cost nothing");
    }
  }
  return WithContext(
      absl::StrCat(failed, " of ", targets, " queries failed; the first, ", first->target, ": "),
      WithNote(first->status, end));
}

}  // namespace privatemail::client
