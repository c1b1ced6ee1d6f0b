// Plans of queries for cells: arithmetic over the quality that the server has measured.
#ifndef PRIVATEMAIL_CLIENT_PLANNING_QUERY_PLAN_H_
#define PRIVATEMAIL_CLIENT_PLANNING_QUERY_PLAN_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/planning/cell_cost.h"
#include "common/cells/cell_quality.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/guarantee.h"

namespace privatemail::client {

// Upper bound on the bytes of RetrieveCells messages with `items` items without payloads, in pieces
// of at least 64 KiB, for ids of `id_bytes`; TLS and HTTP/2 add some percent. Requires a code.
int64_t AnswerBytes(const PublicParameters& parameters, int64_t items, int64_t id_bytes);

// The most items whose answer takes at most so many bytes; 0: not even one.
int64_t ItemsWithin(const PublicParameters& parameters, int64_t bytes, int64_t id_bytes);

// In [0, 1]. 95 % interval for the mean over half as many new queries like the gallery's items as
// the server measured, widened by the rounding of what is published.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

// The quality of a plan, measured as in MeasuredQuality.
struct Prediction {
  Estimate fidelity;
  Estimate recall;
};

// The prediction for queries that request one of K cells (cost.ask and focus are 1). With w = 1 the
// own cell is drawn with probability e^epsilon / (e^epsilon + K - 1) and the others are equally
// likely (PRIVACY.md section 5). Between measured numbers of items, linear in their logarithm.
Prediction Predict(const CellQuality& quality, const CellCost& cost, int64_t cells, int64_t items);

// The fewest measured items whose fidelity is at most .05 below that of the most.
int64_t DefaultItems(const CellQuality& quality, const CellCost& cost, int64_t cells);

// Requirements on a query: guarantee, cost and retrieval quality.
struct PlanWish {
  double epsilon = 0;                                           // has no default: 0 is refused
  int64_t max_bytes = std::numeric_limits<int64_t>::max() / 2;  // of the answer
  std::optional<double> fidelity = {};  // at least, in (0, 1); neither: the most that can be found
  std::optional<double> recall = {};
  int64_t id_bytes = 24;  // of an item's id, positive; not published: assumed
};

// The settings of a query, with its predicted quality and cost. Public: independent of any target.
struct QueryPlan {
  CellCost cost;      // ask and focus 1
  int64_t cells = 0;  // K of the partition
  int64_t items = 0;  // that are returned; never all
  Prediction prediction;
  double own_fidelity = 0;  // if the own cell were drawn for certain
  int64_t bytes_down = 0;
  Guarantee guarantee = {};  // of each query with it
  bool fulfils = true;       // the wish
};

// The plan of fewest items that is predicted to fulfil the wish, over all partitions and measured
// numbers of items; else the one of highest fidelity (or recall, if only that is wished).
// INVALID_ARGUMENT naming what is out of range; max_bytes below kQualityMatches items.
// FAILED_PRECONDITION: the gallery (of `gallery` items) has shrunk below what was measured.
absl::StatusOr<QueryPlan> MakePlan(const PublicParameters& parameters, const CellQuality& quality,
                                   int64_t gallery, const PlanWish& wish);

// Why a plan has less fidelity than was wished with this share f of the items: its list, if the own
// cell for certain finds less; or else the ceiling of CellCeiling, and what it would take.
std::string WhyNot(const QueryPlan& plan, double share, double wished);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PLANNING_QUERY_PLAN_H_
