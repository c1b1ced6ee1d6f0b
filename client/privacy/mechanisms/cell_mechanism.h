// The cells mechanism (PRIVACY.md section 5): which cells of a public partition are asked for.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CELL_MECHANISM_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CELL_MECHANISM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "privatemail/bit_source.h"
#include "privatemail/guarantee.h"

namespace privatemail::client {

// All public.
struct CellChoice {
  int64_t cells = 0;  // K: of the partition, 2 to 65,536
  int64_t ask = 0;    // w: asked for in every request, 1 to K - 1
  int64_t focus = 0;  // t: the best cells for a query, to which the set is drawn, 1 to K - 1
  double epsilon = 0;
};

// Draws a set S of `ask` cells with Pr[S] proportional to exp(epsilon |S and T| / r), T being the
// `focus` cells that are best for a query and r = min(t, w, K - t, K - w): pure epsilon-DP over all
// that T may depend on, features and class.
//
// Proof: |S and T| takes r + 1 values, so that exp(epsilon |S and T| / r) changes by at most
// e^epsilon with T; and what all sets' weights add up to is the same for every T, as only its size
// t is in it.
//
// The law is sampled exactly, in a time that hardly depends on epsilon. First j = |S and T|, whose
// weight is C(t, j) C(K - t, w - j) exp(epsilon j / r): a uniform number in [0, 1), of which as
// many bits are drawn as it takes, is compared with the distribution function, which is known
// between bounds in integers (exp_interval.h) as close as it takes. No probability passes through
// floating point. Then j of T and w - j of the others, uniformly. Immutable and thread-safe.
class CellMechanism {
 public:
  // INVALID_ARGUMENT naming the field that is out of range.
  static absl::StatusOr<CellMechanism> Create(const CellChoice& choice);

  const CellChoice& choice() const;
  // e^-epsilon-close over any two queries, proven.
  const Guarantee& guarantee() const;

  // Pr[|S and T| = j] for j = 0 .. t, in double: to plan with, not to draw from.
  std::vector<double> OverlapProbabilities() const;

  // The cells asked for, ascending: the order tells nothing. best: T, numbers of cells from 0.
  // INVALID_ARGUMENT: not `focus` different cells. Otherwise the error of `bits`.
  absl::StatusOr<std::vector<int64_t>> Choose(const std::vector<int64_t>& best,
                                              BitSource& bits) const;

 private:
  struct Law;
  explicit CellMechanism(std::shared_ptr<const Law> law) : law_(std::move(law)) {}

  std::shared_ptr<const Law> law_;
};

// The most that any epsilon-DP choice of a share f of cells can do on average over the cells: the
// probability that the best cell is among them, f e^epsilon / (1 + f (e^epsilon - 1)) (PRIVACY.md
// section 5). share: in [0, 1].
double CellCeiling(double epsilon, double share);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_MECHANISMS_CELL_MECHANISM_H_
