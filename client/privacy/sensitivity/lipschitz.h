// Lipschitz constant of the joint release in the target's features, for the output mechanisms of
// Inference Privacy (calibration.h).
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_LIPSCHITZ_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_LIPSCHITZ_H_

#include "absl/status/statusor.h"
#include "client/privacy/sensitivity/sensitivity.h"

namespace privatemail::client {

// |f(X) - f(X')| <= constant * |x - x'|_2 whenever X and X' are unit rows that differ in the row x
// of one slot alone; f is one iteration (sensitivity.h), n x k. The target's class is public here:
// it is the slot.
struct ReleaseLipschitz {
  double to_l2 = 0;  // of f's Frobenius norm: Gauss-Output
  double to_l1 = 0;  // of the sum of f's absolute entries: Lap-Output
};

// Proven, for any other rows and any slot of the target.
//
// Let y run over the straight line from x to x'. It stays in the unit ball, so every |x_j - y| <= 2
// and every w_j = exp(-|x_j - y|^2 / c) lies in [m, 1], m = exp(-4/c). Write f = (F + Q) / 2 with
//   F_i = (l_i + sum_j w_ij q_j) / D_i,  l = alpha L_Y Q,  g_i = |l_i|,  D_i >= (n-1) m;
// for a unit direction e, dw_j = (2/c) w_j (x_j - y).e. Deviation and average as in StartSpread
// (lipschitz.cc).
//
// *The target's own row a.* With p = w / D and means under p written with a bar,
//   dF = sum_j dw_j (q_j - F) / D
//      = (2/c) [ sum_j p_j (q_j - qbar) (x_j - xbar).e - (l / D) (xbar - y).e ],
// since F = qbar + l/D. By Cauchy and Schwarz the first term is at most deviation * v with
//   v^2 = Var_p(x.e),
// the second at most g/D * b with b = |(xbar - y).e|. Rows of length 1 have v <= 1, and
//   v^2 + b^2 = sum p ((x_j - y).e)^2 <= 4.
// With G = g_a / ((n-1) m), the largest deviation * v + G b under both is
//   2 sqrt(deviation^2 + G^2)  where G^2 >= 3 deviation^2,
//   deviation + sqrt(3) G      otherwise.
// So row a of f moves by at most a 1/c-th of that.
//
// *Another row i.* Only w_ia moves: dF_i = dw_ia (q_a - F_i) / D_i with
//   |q_a - F_i| <= |q_a - mean Q| + average_i + g_i / ((n-1) m),
// and w r <= T, the largest r exp(-r^2 / c) on [0, 2]: sqrt(c/2e) where c <= 8, 2 m above. So row i
// of f moves by at most T |q_a - F_i| / (c (n-1) m).
//
// Tightness: .9 of it is reached at s = 6 with rows at two poles and a start that agrees with them,
// .89 by ascent over all rows and starts of up to 12. A random start is independent of the
// features: random rows at the second paper's settings (n = 1,100, d = 64) stay some 270 times
// below.
//
// to_l2 is the root of the sum of squares over all rows, to_l1 sqrt(k) times their sum, both for
// the worst slot. Add twice IterationRoundingError to constant * radius before
// calibration.
//
// `inputs` and errors as ReplaceTargetSensitivity. Time: O(n k^2 + slots).
absl::StatusOr<ReleaseLipschitz> LipschitzOfRelease(const IterationInputs& inputs);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_LIPSCHITZ_H_
