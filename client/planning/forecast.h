// What queries for cells are expected to find in a collection, told from its public anchors alone:
// no target is seen, nothing is spent, and no server is asked.
#ifndef PRIVATEMAIL_CLIENT_PLANNING_FORECAST_H_
#define PRIVATEMAIL_CLIENT_PLANNING_FORECAST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/planning/found.h"
#include "client/planning/stand_in.h"
#include "common/cells/cell_lists.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {

// Of a mean over queries of the kind that anchors are; in [0, 1]. How often the mean lies between
// `low` and `high` is measured by tests/benchmarks/plan_coverage.cc; docs/results.md says what it was.
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

// Of one collection. The stand-ins answer as its server does: lists of what known queries of each
// cell want (common/cells), the held-out anchors ask, and the mean is exact over the mechanism's
// law. A stand-in of G items is sparser than a gallery of n, for which it is corrected:
// - fidelity: the same share of the items answers; k is scaled by sqrt(G / n), and by G / n the
//   ranks that demand counts. The more queries a cell a server knows, beside the stand-in, the
//   better its lists fit than those fit held-out anchors: up to .43 of the way to what the known
//   ones find is added.
// - codes: anchors come back as their codes have them, with enlarged errors, since items lie nearer
//   together than the anchors, and since a codebook that was trained on anchors fits them better.
// - recall: the first items that come back have the query's class with a probability p that differs
//   from place to place, as in a Beta law, of which the three nearest tell mean and variance;
//   1 - E (1 - p)^k of them. They take more room than the k nearest of a gallery, for which lists
//   are longer; or less of it, if there are few items an anchor, and lists are shorter.
// Intervals are as wide as sampling the anchors makes them (a jackknife over stand-ins) and as
// these rules have erred. The rules, their constants and those widths are found by experiment and
// not derived: forecast.cc says on which data. They say nothing of queries of another kind than the
// anchors, of galleries of other classes or in other proportions. Immutable and thread-safe.
class Forecaster {
 public:
  // anchors must be those that the parameters were published with; items: n, of the gallery.
  // FAILED_PRECONDITION: the collection has no cells, fewer than 20 anchors, or the code none.
  // INVALID_ARGUMENT and DATA_LOSS as CheckAnchors; INVALID_ARGUMENT: an anchor is zero or not
  // finite, or items is not positive.
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
  // What is asked of a stand-in; own: probability that the own cell is asked for.
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
