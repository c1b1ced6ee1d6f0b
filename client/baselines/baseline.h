// Input and result of the evaluation's baselines: rows to rank, gallery rows for each target.
//
// For comparison only: nothing here charges a ledger or is sent to a server. Each baseline states
// what it protects, its neighbours and its source; all_baselines.h lists them by name.
#ifndef PRIVATEMAIL_CLIENT_BASELINES_BASELINE_H_
#define PRIVATEMAIL_CLIENT_BASELINES_BASELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "privatemail/guarantee.h"

namespace privatemail::client {

// Rows of length 1 with a label each.
struct LabelledRows {
  Matrix features;                            // n x d
  std::vector<int32_t> labels;                // n
  std::vector<std::string> class_names = {};  // by label, where classes have names; or empty
};

// The three parties' rows of one experiment; no row is in two of them.
struct DataSplit {
  LabelledRows anchors;  // public
  LabelledRows gallery;  // the server's
  LabelledRows targets;  // the searchers', never from the gallery
};

}  // namespace privatemail::client

namespace privatemail::client::baselines {

// The cost of a baseline's whole release. Ignored by those without privacy; pure ones ignore delta.
struct Cost {
  double epsilon = 0;
  double delta = 0;
};

struct BaselineResult {
  Matrix gallery = {};       // n x k, row i is gallery row i of the split
  Matrix targets = {};       // m x k, row i is target row i of the split
  Guarantee guarantee = {};  // epsilon infinite where nothing is promised
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

// Upper bound on recall@k over targets drawn uniformly from C classes, for k gallery rows computed
// from one release that is (epsilon, delta)-DP for any two targets of any classes:
//   min(1, (k e^epsilon + (C - 1) delta) / (k e^epsilon + C - k))      for k < C, and 1 otherwise.
//
// Proof. The k rows have a set S of at most k classes; let it have k. Let Q(S|c) be its chance for
// a target of class c. The answer is post-processing, so for every c != c'
//   sum_S max(0, Q(S|c) - e^epsilon Q(S|c')) <= delta.
// For each S add up Q(S|c) <= e^epsilon Q(S|c') + excess over c in S and c' not in S, and then over
// all S. With R the sum of Q(S|c) over c in S, so that hits are R / C and the rest of all Q is C -
// R: (C - k) R <= k e^epsilon (C - R) + C (C - 1) delta. Solve for R / C. For delta = 0 it is
// reached by subset selection (Ye and Barg, "Optimal Schemes for Discrete Distribution Estimation
// Under Locally Differential Privacy", 2018).
//
// - precision@k, the mean share of right rows, has the bound of k = 1: each row is an answer.
// - Classes of unequal size: the bound holds for recall averaged over classes, not over targets.
// - INVALID_ARGUMENT naming the field: epsilon not finite or negative, delta outside [0, 1), fewer
//   than 2 classes, k below 1.
absl::StatusOr<double> LabelHidingCeiling(const Cost& cost, int64_t classes, int64_t k);

// Upper bound for one answer over targets of which class c has the share p_c, at most `largest`:
//   min(1, (e^epsilon + (C - 1) delta) / (e^epsilon + (1 - largest) / largest)).
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
