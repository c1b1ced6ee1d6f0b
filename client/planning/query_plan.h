// Plans of queries for cells, chosen before any budget is spent.
#ifndef PRIVATEMAIL_CLIENT_PLANNING_QUERY_PLAN_H_
#define PRIVATEMAIL_CLIENT_PLANNING_QUERY_PLAN_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/planning/forecast.h"
#include "common/embedding/public_parameters.h"
#include "privatemail/cell_scheme.h"
#include "privatemail/guarantee.h"

namespace privatemail::client {

// Upper bound on the bytes of RetrieveCells messages with `items` items without payloads, in pieces
// of at least 64 KiB, for ids of `id_bytes`; TLS and HTTP/2 add some percent. Requires a code.
int64_t AnswerBytes(const PublicParameters& parameters, int64_t items, int64_t id_bytes);

// The most items whose answer takes at most so many bytes; 0: not even one.
int64_t ItemsWithin(const PublicParameters& parameters, int64_t bytes, int64_t id_bytes);

// Requirements on a query: guarantee, cost and retrieval quality.
struct PlanWish {
  double epsilon = std::numeric_limits<double>::quiet_NaN();  // no default
  int64_t max_bytes = 0;                                      // of the answer
  std::optional<double> fidelity;  // at least, in (0, 1); neither: the most that can be found
  std::optional<double> recall;
  int64_t k = 8;          // matches wanted
  int64_t id_bytes = 24;  // of an item's id, which is not published: assumed
};

// The ceiling over fidelity of CellCeiling, p = f e^epsilon / (1 + f (e^epsilon - 1)), read in all
// three directions. Of a wish for p: an average over cells that are equally wanted; lists that
// overlap, and items that many queries want, may find a little more at small epsilon.
struct Ceiling {
  double share = 0;           // f: of the gallery that may answer
  double fidelity = 0;        // p at this share
  double share_needed = 0;    // f for the fidelity that was wished, at this epsilon
  double epsilon_needed = 0;  // epsilon for it, at this share

  // "ceiling: with a share f = 800 / 8000 = 0.1 of the items and epsilon 1 ..."
  std::string InWords(double epsilon, double wished) const;
};

// wished: in (0, 1); share in (0, 1].
Ceiling CeilingFor(double epsilon, double share, double wished);

// How a query asks, and what comes of it. Public: no target has a part in it.
struct QueryPlan {
  CellCost cost;      // ask and focus 1
  int64_t cells = 0;  // K of the partition
  int64_t items = 0;  // that answer
  int64_t k = 0;
  Forecast forecast;
  int64_t bytes_down = 0;
  Guarantee guarantee = {};  // of each query with it
  bool fulfils = true;       // the wish
  // Why a wished fidelity is not reached: `ceiling`, or `open_fidelity` of a search without privacy
  // that returns all items. For a wished recall: `open_recall` of such a search.
  std::optional<Ceiling> ceiling = {};
  std::optional<Estimate> open_fidelity = {};
  std::optional<Estimate> open_recall = {};

  // "even a search that hides nothing is predicted to have ...". Requires open_fidelity.
  std::string OpenFidelityInWords() const;
  // "no ceiling, but even a search that hides nothing is predicted to find ...": where all items
  // come back, recall is predicted too low (docs/results.md). Requires open_recall.
  std::string OpenRecallInWords(double wished) const;
};

// The plan of fewest bytes that is forecast to fulfil the wish, over all partitions and numbers of
// items in steps of 1.5 up to max_bytes; else the one of highest fidelity (or recall, if only that
// is wished). ask and focus are 1 (PRIVACY.md section 5). parameters and forecaster: of one
// collection. INVALID_ARGUMENT naming what is out of range; max_bytes below one item.
absl::StatusOr<QueryPlan> MakePlan(const PublicParameters& parameters, const Forecaster& forecaster,
                                   const PlanWish& wish);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PLANNING_QUERY_PLAN_H_
