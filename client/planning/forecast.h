// Forecasts of retrieval quality for cell queries, computed from a collection's public anchors
// alone: no target is seen, no budget is spent, and no server is contacted.
#ifndef PRIVATEMAIL_CLIENT_PLANNING_FORECAST_H_
#define PRIVATEMAIL_CLIENT_PLANNING_FORECAST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/planning/stand_in.h"
#include "common/cells/cell_lists.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {

// Interval of a mean over queries like the anchors, in [0, 1]; coverage: docs/results.md, measured
// by tests/benchmarks/plan_coverage.cc.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

// Of the k matches that a client keeps: those of the items that came back that are nearest to the
// query as their codes have them.
struct Forecast {
  Estimate fidelity;  // share of the k items nearest to a query that are among its matches
  Estimate recall;    // probability that one of the matches has the query's class
};

// How queries that ask for one cell are chosen (CellMechanism with ask and focus 1), and how many
// matches are wanted of what comes back.
struct CellAsk {
  int64_t partition = 0;
  double epsilon = 0;
  int64_t k = 8;
};

// Forecasts for one collection. Immutable and thread-safe.
//
// Stand-ins answer like the server; held-out anchors query them; the mean over the mechanism's law
// is exact. A stand-in of G items is sparser than a gallery of n, for which it is corrected:
// - fidelity: the same share of items answers; k is scaled by sqrt(G / n), demand's ranks by G / n;
//   up to .43 of the gap between known and held-out queries is added.
// - codes: anchors come back decoded, with enlarged errors.
// - recall: 1 - E (1 - p)^k, p a Beta law fitted to the three nearest; list lengths are adjusted.
// Intervals: a jackknife over stand-ins, widened by the observed errors of these rules. Constants
// are empirical (data: forecast.cc) and say nothing about other kinds of queries or galleries.
class Forecaster {
 public:
  // anchors: those that the parameters were published with. items: n, of the gallery.
  // FAILED_PRECONDITION: no cells, no code, or fewer than 20 anchors. INVALID_ARGUMENT and
  // DATA_LOSS as CheckAnchors; INVALID_ARGUMENT: an anchor that is zero or not finite, items not
  // positive.
  static absl::StatusOr<Forecaster> Create(const PublicParameters& parameters,
                                           const Anchors& anchors, int64_t items);

  int64_t items() const { return items_; }
  // Cells of each partition.
  const std::vector<int64_t>& cells() const { return cells_; }

  // One for each of `answered`, the numbers of items that answer. INVALID_ARGUMENT naming what is
  // out of range: partition, epsilon, k or an answered number of items, which are 1 to items().
  // Takes time as anchors x cells: of one core 20 s for 8,000 anchors and 100 cells, 98 s for 400.
  absl::StatusOr<std::vector<Forecast>> Foresee(const CellAsk& ask,
                                                const std::vector<int64_t>& answered) const;

  // A sentence, where so few or so many items answer, or come to an anchor, that how often
  // intervals hold has not been measured; nothing elsewhere.
  std::optional<std::string> WhyUnmeasured(int64_t answered) const;

 private:
  Forecaster() = default;

  double ItemsPerStandIn() const;  // of the gallery, for one of a stand-in
  absl::Status CheckAsk(const CellAsk& ask, const std::vector<int64_t>& answered) const;
  // own: probability that the own cell is requested.
  StandInAsk InSmall(const CellAsk& ask, double own, const std::vector<int64_t>& answered) const;

  int64_t items_ = 0;
  double code_width_ = 0;        // what the code adds to intervals
  std::vector<int64_t> cells_;   // of each partition
  std::vector<ItemCells> lie_;   // of each partition, where each anchor does
  std::vector<int32_t> labels_;  // of each anchor
  std::vector<StandIn> stand_ins_;
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PLANNING_FORECAST_H_
