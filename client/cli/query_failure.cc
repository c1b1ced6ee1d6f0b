#include "client/cli/query_failure.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"

namespace privatemail::cli {
namespace {

bool Failed(const QueryOutcome& outcome) { return !outcome.status.ok(); }

bool FailedAndCharged(const QueryOutcome& outcome) { return Failed(outcome) && outcome.charged(); }

// Names no class: messages of errors are passed on more easily than answers are.
std::string Cost(const std::vector<QueryOutcome>& outcomes, size_t queries) {
  const auto charged = std::count_if(outcomes.begin(), outcomes.end(), FailedAndCharged);
  if (charged == 0) return "";
  const auto first = std::find_if(outcomes.begin(), outcomes.end(), FailedAndCharged);
  const std::string cost =
      absl::StrCat("; epsilon ", first->prepared.state.guarantee.epsilon, " was spent for ",
                   charged == 1 ? "it" : absl::StrCat("each of ", charged));
  const QueryOutcome& last = outcomes.back();
  if (!Failed(last) || !last.kept) return cost;
  return absl::StrCat(cost, "; `privatemail resend --label CLASS` sends the ",
                      queries == 1 ? "same release" : "last of these releases",
                      " again at no cost");
}

}  // namespace

absl::Status FailureOf(const std::vector<QueryOutcome>& outcomes, size_t queries) {
  const auto first = std::find_if(outcomes.begin(), outcomes.end(), Failed);
  if (first == outcomes.end()) return absl::OkStatus();
  const std::string cost = Cost(outcomes, queries);
  const absl::string_view message = first->status.message();
  if (queries == 1) return absl::Status(first->status.code(), absl::StrCat(message, cost));
  const auto failed = std::count_if(outcomes.begin(), outcomes.end(), Failed);
  const size_t unsent = queries - outcomes.size();
  return absl::Status(
      first->status.code(),
      absl::StrCat(failed, " of ", queries, " queries failed; the first, ", first->target.name,
                   ": ", message, cost,
                   unsent == 0 ? ""
                               : absl::StrCat("; ", unsent, " more ", unsent == 1 ? "was" : "were",
                                              " not sent and cost nothing")));
}

}  // namespace privatemail::cli
