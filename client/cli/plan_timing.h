// How long this machine takes for its part of a query for cells.
#ifndef PRIVATEMAIL_CLIENT_CLI_PLAN_TIMING_H_
#define PRIVATEMAIL_CLIENT_CLI_PLAN_TIMING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/planning/query_plan.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/cell_scheme.h"

namespace privatemail::client::cli {

// Medians of a few trials, without network, server and ledger.
struct PlanTiming {
  double choose_ms = 0;  // to find the best cells and draw those to ask for
  double rank_ms = 0;    // to decode and rank the items that answer
};

// Anchors serve as the target and as the items: nothing is sent or spent. Of more than 20,000 items
// as many are ranked, and the rest is taken to cost the same each. Errors: those of the scheme, and
// of the secure bits.
absl::StatusOr<PlanTiming> TimePlan(const CellScheme& scheme, const Anchors& anchors,
                                    const QueryPlan& plan, int64_t id_bytes);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PLAN_TIMING_H_
