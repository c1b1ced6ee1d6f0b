// What every baseline of the evaluation takes and gives.
//
// A baseline turns features into rows that are ranked: for each target row the gallery rows, by
// Euclidean distance. Each says in its own header what it protects, against whom, which neighbours
// its guarantee speaks of and where its formula is from; all_baselines.h lists them by name. They
// exist to be compared with: nothing here charges a ledger, and nothing here is sent to a server.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_BASELINE_H_
#define PRIVATEMAIL_CLIENT_BASELINES_BASELINE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/evaluation/dataset.h"
#include "common/base/matrix.h"
#include "privatemail/guarantee.h"

namespace privatemail::client::baselines {

// What the whole of a baseline's release may cost. Those without privacy ignore it, and those that
// are pure ignore delta.
struct Cost {
  double epsilon = 0;
  double delta = 0;
};

struct BaselineResult {
  Matrix gallery = {};        // n x k, row i is gallery row i of the split
  Matrix targets = {};        // m x k, row i is target row i of the split
  Guarantee guarantee = {};   // epsilon infinite where nothing is promised
  std::string protects = {};  // a sentence: what is hidden, from whom, and what is not
};

// Epsilon infinite, which Validate refuses: what promises nothing composes with nothing.
Guarantee NoGuarantee();

// INVALID_ARGUMENT naming what is wrong, unless gallery and targets have rows, of as many columns
// each, and dimension lies between 1 and that number.
absl::Status CheckSplit(const DataSplit& split, int64_t dimension);

// d x count orthonormal columns: the eigenvectors of the `count` (1 to d) largest eigenvalues,
// largest first. The sign of a column is arbitrary. symmetric: d x d; its lower triangle is read.
// INVALID_ARGUMENT: a value is not finite.
absl::StatusOr<Matrix> PrincipalAxes(const Matrix& symmetric, int64_t count);

// Whoever answers sees nothing of a target but one release that is (epsilon, delta)-differentially
// private for any two targets, whatever their classes, and answers with k gallery rows. It hits if
// one of them has the target's class. Over targets drawn uniformly from C classes no answer hits
// more often than
//   min(1, (k e^epsilon + (C - 1) delta) / (k e^epsilon + C - k))      for k < C, and 1 otherwise.
// For k = 1 and delta = 0 this is e^epsilon / (e^epsilon + C - 1).
//
// Proof. The k rows have a set S of at most k classes; more can only help, so let it have k. Let
// Q(S|c) be its chance for a target of class c. The answer is post-processing, so for every c != c'
//   sum_S max(0, Q(S|c) - e^epsilon Q(S|c')) <= delta.
// For each S add up Q(S|c) <= e^epsilon Q(S|c') + excess over c in S and c' not in S, and then over
// all S. With R the sum of Q(S|c) over c in S, so that hits are R / C and the rest of all Q is
// C - R: (C - k) R <= k e^epsilon (C - R) + C (C - 1) delta. Solve for R / C. For delta = 0 it is
// reached by subset selection (Ye and Barg, "Optimal Schemes for Discrete Distribution Estimation
// Under Locally Differential Privacy", 2018), which answers with k classes at once.
//
// Lifted to @k in the other sense: a mechanism that names one class, the right one with the chance
// at k = 1 and otherwise a uniformly drawn other one, and fills its k answers with that class,
// hits with the chance at k = 1 for every k that the class has rows for; so does, on average, the
// share of right rows among k answers, each of which is an answer with k = 1. Use k = 1 for both.
//
// Classes of unequal size: the bound holds for recall averaged over classes, not over targets: see
// below. INVALID_ARGUMENT naming the field: epsilon not finite or negative, delta outside [0, 1),
// fewer than 2 classes, k below 1.
absl::StatusOr<double> LabelHidingCeiling(const Cost& cost, int64_t classes, int64_t k);

// The same over targets of which class c has the share p_c, none above `largest`, for one answer:
//   min(1, (e^epsilon + (C - 1) delta) / (e^epsilon + (1 - largest) / largest)),
// which for equal shares is the ceiling above, and without a release (epsilon = delta = 0) the
// largest share: the guess at the largest class.
//
// Proof. Let q_c be the chance that the answer is c for a target of class c, A = sum p_c q_c. For c
// != c' the answer is c for a target of class c' with at least e^-epsilon (q_c - delta), so that
// wrong answers have 1 - A >= sum_c (1 - p_c) e^-epsilon (q_c - delta). As (1 - p_c) >= p_c (1 -
// largest) / largest, and the 1 - p_c add up to C - 1, 1 - A >= e^-epsilon (A (1 - largest) /
// largest - (C - 1) delta). Solve for A.
//
// INVALID_ARGUMENT as above, and for a share outside [1 / C, 1].
absl::StatusOr<double> LabelHidingCeilingOverTargets(const Cost& cost, int64_t classes,
                                                     double largest);

}  // namespace privatemail::client::baselines

#endif  // PRIVATEMAIL_CLIENT_BASELINES_BASELINE_H_
