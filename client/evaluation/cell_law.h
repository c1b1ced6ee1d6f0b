// Which cells a query asks for, by the mechanism that is built and by one to compare it with.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_CELL_LAW_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_CELL_LAW_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "privatemail/bit_source.h"
#include "client/privacy/mechanisms/cell_mechanism.h"

namespace privatemail::client {

// A law over sets of cells that depends on how a query ranks them, and on nothing else of it.
//
// Step: CellMechanism. Graded: one cell, the one of rank r = 0 .. K - 1 with a probability
// proportional to exp(-epsilon r / (K - 1)). Pure epsilon-DP: probabilities of a cell differ by
// e^epsilon at most between two rankings, and what they are divided by is the same for all of them.
// It is the exponential mechanism over graded closeness, without the factor of 2 that a normaliser
// which depends on the query would cost.
//
// No such law that asks for one cell finds more than a step does. Let weights a_0 >= .. >= a_{K-1}
// within a factor e^epsilon of each other be what ranks are asked by, and v_r what the cell of rank
// r finds: sum(a v) / sum(a) is a quotient of linear functions, and largest at a corner, where each
// weight is either the least or e^epsilon times that, the larger ones for the largest v: those of
// the nearest cells, where a cell finds the less the farther it is.
class CellLaw {
 public:
  // INVALID_ARGUMENT naming the field, as CellMechanism::Create.
  static absl::StatusOr<CellLaw> Step(const CellChoice& choice);
  static absl::StatusOr<CellLaw> Graded(int64_t cells, double epsilon);

  // Cells asked for. ranked: all K, the best for a query first.
  absl::StatusOr<std::vector<int64_t>> Draw(const std::vector<int64_t>& ranked,
                                            BitSource& bits) const;

  // The probability that one at least of the cells of these ranks is asked for; in double, to plan
  // with. ranks: different, each in [0, K).
  double AnyAsked(const std::vector<int64_t>& ranks) const;

 private:
  explicit CellLaw(CellMechanism mechanism);
  bool graded() const { return !rank_probabilities_.empty(); }

  CellMechanism mechanism_;                      // of a graded law: for its cells and epsilon alone
  std::vector<double> overlaps_;                 // of the mechanism
  std::vector<double> rank_probabilities_ = {};  // where it is graded
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_CELL_LAW_H_
