// Timing of the client's part of a query for cells.
#ifndef PRIVATEMAIL_CLIENT_CLI_PLAN_TIMING_H_
#define PRIVATEMAIL_CLIENT_CLI_PLAN_TIMING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/planning/query_plan.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/cell_scheme.h"

namespace privatemail::client::cli {

// Medians of five trials, without network, server and ledger.
struct PlanTiming {
  double choose_ms = 0;  // finding the best cells and drawing those to request
  double rank_ms = 0;    // decoding and ranking the received items
};

// Uses anchors as target and items; nothing is sent or spent. Beyond 20,000 items the time is
// extrapolated. Errors: those of the scheme and of the secure bits.
absl::StatusOr<PlanTiming> TimePlan(const CellScheme& scheme, const Anchors& anchors,
                                    const QueryPlan& plan, int64_t id_bytes);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_PLAN_TIMING_H_
