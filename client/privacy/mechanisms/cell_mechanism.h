// The cell mechanism (PRIVACY.md section 5): a private choice of the cells of a public partition
// that a query requests.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CELL_MECHANISM_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CELL_MECHANISM_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/privacy/sampling/bit_source.h"
#include "privatemail/guarantee.h"

namespace privatemail::client {

// Parameters, all public.
struct CellChoice {
  int64_t cells = 0;  // K: cells of the partition, 2 to 65,536
  int64_t ask = 0;    // w: cells of every request, 1 to K - 1
  int64_t focus = 0;  // t: number of best cells for a query, which the request favours, 1 to K - 1
  double epsilon = 0;
};

// Draws a set S of `ask` cells with Pr[S] proportional to exp(epsilon |S and T| / r), T being the
// `focus` cells that are best for a query and r = min(t, w, K - t, K - w): pure epsilon-DP over
// everything T depends on, features and class. Immutable and thread-safe.
//
// Proof: |S and T| takes r + 1 values, so that exp(epsilon |S and T| / r) changes by at most
// e^epsilon with T; and the sum of all sets' weights is the same for every T, as it depends on its
// size t only.
//
// Exact sampling, in a time that hardly depends on epsilon:
// 1. j = |S and T|, of weight C(t, j) C(K - t, w - j) exp(epsilon j / r): a uniform number in
//    [0, 1), drawn word by word, is compared with integer bounds of the distribution function
//    (exp_interval.h), both refined until they decide. No probability passes through floating
//    point.
// 2. j cells of T and w - j of the others, uniformly.
class CellMechanism {
 public:
  // INVALID_ARGUMENT naming the field that is out of range.
  static absl::StatusOr<CellMechanism> Create(const CellChoice& choice);

  const CellChoice& choice() const;
  // Pure epsilon-DP between any two queries, proven.
  const Guarantee& guarantee() const;

  // Pr[|S and T| = j] for j = 0 .. t, in double: for planning, not for sampling.
  std::vector<double> OverlapProbabilities() const;

  // The probability that the best cell is among those requested: of each of the `focus` best ones.
  // For one cell of K: e^epsilon / (e^epsilon + K - 1).
  double BestCellProbability() const;

  // The requested cells, ascending, so that the order reveals nothing. best: T, indices from 0.
  // INVALID_ARGUMENT: not `focus` different cells. Otherwise errors of `bits`.
  absl::StatusOr<std::vector<int64_t>> Choose(const std::vector<int64_t>& best,
                                              BitSource& bits) const;

 private:
  struct Law;
  explicit CellMechanism(std::shared_ptr<const Law> law) : law_(std::move(law)) {}

  std::shared_ptr<const Law> law_;
};

// Upper bound on the probability that the best cell is requested, averaged over the cells, for any
// epsilon-DP choice of a share f of them: f e^epsilon / (1 + f (e^epsilon - 1)) (PRIVACY.md section
// 5). share: f, in [0, 1].
double CellCeiling(double epsilon, double share);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CELL_MECHANISM_H_
