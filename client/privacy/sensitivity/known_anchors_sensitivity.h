// Sensitivity of one private iteration for known anchors. Their features are public, so sums over
// them are known and need no worst-case bound.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_KNOWN_ANCHORS_SENSITIVITY_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_KNOWN_ANCHORS_SENSITIVITY_H_

#include "absl/status/statusor.h"
#include "client/privacy/sensitivity/sensitivity.h"
#include "common/base/matrix.h"

namespace privatemail::client {

// Proven: an upper bound on |f(X) - f(X')| over all unit rows X and X' that differ in
// `changed_rows` slot rows and whose rows after the slots are `anchors`. Never above
// ReplaceTargetSensitivity. Depends on public values only: n, s, alpha, the slot labels, Q and the
// anchors.
//
// P anchors p_j with mean pbar, S slots, mu the mean of q over the anchors, m = exp(-4/c), t =
// changed_rows. With N_i = sum_{j != i} w_ij (q_j - mu), f = (F + Q)/2 and l = alpha L_Y Q,
//   F_i = mu + (l_i + N_i) / D_i.                                                            (1)
// *A unit row x and the anchors.* w(x, p_j) = e^(-2/c) e^(2 x.p_j / c), and |e^s - 1 - s| <= r :=
// e^(2/c) - 1 - 2/c for |s| <= 2/c. The anchors' part of N is,
// with C = sum_j (q_j - mu) p_j' (k x d),
//   e^(-2/c) ( (2/c) C x + rest ), |rest| <= r sqrt(P) |Q_P - mu|_op,                         (2)
// since sum_j (q_j - mu) = 0 and by Cauchy and Schwarz. The slots' part is sum_j w_j (q_j - mu),
// w_j in [m, 1]. So N moves with x by at most
//   dN = 2 e^(-2/c) ((2/c) |C|_op + r sqrt(P) |Q_P - mu|_op) + (1-m) sqrt(S) |Q_S - mu|_op,
// and |N| <= M := half of the first term + (1+m)/2 (|sum_S (q_j - mu)| + max_S |q_j - mu|) +
// (1-m)/2 sqrt(S) |Q_S - mu|_op. By Jensen's inequality and the chord of exp on [-2/c, 2/c] the
// anchors' part of the degree lies within e^(-2/c) P [e^(-2 |pbar| / c), cosh(2/c) + |pbar|
// sinh(2/c)], the slots' within (S-1) [m, 1]: D in [D_low, D_high], no wider than (n-1) [m, 1].
// *Row a that changes.* By (1), F - F' = (N - N')/D + (l_a + N') (1/D - 1/D'), at most
//   B_a = dN / D_low + (g_a + M) (1/D_low - 1/D_high).
// *Row i that stays.* Changing one w_ib from w to w' moves F_i by (w' - w) (q_b - F_i) / D_i', so
// all t of them move it by at most, by (1),
//   A_i = (1-m)/E ( sum over the t largest |q_b - mu| of slots + t (g_i + M + |q_i - mu|) / E ),
// E = max(D_low - 1, (n-1) m): an anchor's own term, w = 1, is missing from its sums.
// Hence D <= 1/2 sqrt(sum_i A_i^2 + t max_slot B_a^2) in L2 and sqrt(k)/2 (sum_i A_i + t max_slot
// B_a) in L1.
//
// Tightness: at the second paper's settings (100 slots, 1,000 random anchors, d = 64, k = 2, s = 6)
// 10 times below ReplaceTargetSensitivity for centred features, 5.6 times for features of one
// orthant. Tests record how near ascent over every row, anchors and start included, and rows at
// poles come to it.
//
// `inputs`: slots below n; anchors: (n - slots) x d, unit rows. Errors as ReplaceTargetSensitivity,
// and INVALID_ARGUMENT: another number of anchors, or a row whose length is not 1 up to the
// rounding of UnitRows. Time: O(n k d).
absl::StatusOr<double> KnownAnchorsSensitivity(const IterationInputs& inputs, const Matrix& anchors,
                                               int changed_rows, Norm norm);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_KNOWN_ANCHORS_SENSITIVITY_H_
