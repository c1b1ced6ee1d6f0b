// How far one private iteration moves when the target is replaced: the L2 sensitivity of
// f(X) = 1/2 Diag(L_X)^+ (alpha L_Y - L_X) Q + Q over the unit rows X.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_SENSITIVITY_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_SENSITIVITY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/label_graph.h"

namespace privatemail::client {

// The public side of one iteration: everything the bounds depend on.
struct IterationInputs {
  const Matrix& start;            // Q, n x k, drawn independently of the data
  const LabelGraph& label_graph;  // L_Y over the labels by slot, then the anchors'
  double alpha = 0;
  double kernel_denominator = 0;  // c of exp(-|x - y|^2 / c)
  int64_t slots = 0;              // the first `slots` rows may hold the target
};

// Proven (PRIVACY.md section 4): an upper bound on |f(X) - f(X')|_F over all unit rows X and X'
// that differ in `changed_rows` slot rows: 2 when the target may be replaced by one of any class
// (its old slot gets its dummy back, its new slot loses one), 1 when the class is public and stays.
//
// With m = exp(-4/c) the smallest kernel value of unit rows, D_i in [(n-1) m, n-1] a degree,
// g_i = |alpha (L_Y Q)_i| and rho = max |q_j|:
// a row that stays moves by at most A_i = t (1-m) (2 rho + g_i / ((n-1) m)) / ((n-1) m), a changed
// one by at most B_a = g_a expm1(4/c) / (n-1) + min(2 rho, sqrt(n-1) u |Q - mean Q|_op) with u =
// (n-2) (1-m^2) / ((1 + (n-2) m) (m + n-2)), and D = 1/2 sqrt(sum_i A_i^2 + t max_slot B_a^2).
//
// INVALID_ARGUMENT: fewer than 2 rows, slots outside [1, n], changed_rows other than 1 or 2, a
// value not finite. FAILED_PRECONDITION: exp(-4/c) is below 1e-150, or the bound is not finite.
absl::StatusOr<double> ReplaceTargetSensitivity(const IterationInputs& inputs, int changed_rows);

// The same in L1, for Laplace noise: each row's move in L2 costs at most sqrt(k) of it in L1, so
// sum |f(X) - f(X')| <= sqrt(k)/2 (sum_i A_i + t max_slot B_a). Proven. Errors as above.
absl::StatusOr<double> ReplaceTargetL1Sensitivity(const IterationInputs& inputs, int changed_rows);

// An upper bound on the magnitude of every entry of f(X), from public values alone: half of
// max_i (rho + |q_i| + g_i / ((n-1) m)). Errors as above.
absl::StatusOr<double> LargestIterateValue(const IterationInputs& inputs);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_SENSITIVITY_H_
