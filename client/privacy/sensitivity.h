// How far one private iteration moves when the target is replaced: the L2 sensitivity of
// f(X) = 1/2 Diag(L_X)^+ (alpha L_Y - L_X) Q + Q over the unit rows X.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/numerics/label_graph.h"

namespace privatemail {

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
// value not finite. FAILED_PRECONDITION: exp(-4/c) or a degree is no normal number, or the bound is
// not finite.
absl::StatusOr<double> ReplaceTargetSensitivity(const IterationInputs& inputs, int changed_rows);

// The same in L1, for Laplace noise: each row's move in L2 costs at most sqrt(k) of it in L1, so
// sum |f(X) - f(X')| <= sqrt(k)/2 (sum_i A_i + t max_slot B_a). Proven. Errors as above.
absl::StatusOr<double> ReplaceTargetL1Sensitivity(const IterationInputs& inputs, int changed_rows);

// An upper bound on the magnitude of every entry of f(X), from public values alone: half of
// max_i (rho + |q_i| + g_i / ((n-1) m)). Errors as above.
absl::StatusOr<double> LargestIterateValue(const IterationInputs& inputs);

// An upper bound on |computed f(X) - f(X)|_F for SmlqUpdate in double precision, by the usual
// rounding analysis: a computed squared distance of unit rows of d coordinates is off by at most 4
// (d + 4) u, so an affinity by a relative 4 (d + 4) u / c + 8 u, a mean over n of them by 2 n u
// more. Twice this is added to a sensitivity before calibration, since both neighbours are computed
// with rounding. Errors as above.
absl::StatusOr<double> IterationRoundingError(const IterationInputs& inputs, int64_t feature_dim);

// The bound that the second paper prints (appendix B, equations 7, 8 and 29): M = n M_ij + M_ii and
// D = M sqrt(n+1) / 2 |Q|_F for labels 0 .. largest_label. NOT a proven sensitivity (PRIVACY.md
// section 2: its proof supports sqrt(M (n+1)) / 2 |Q|_F at best, and a product of negative lower
// bounds is none).
struct PublishedGaussianBound {
  double m_ij = 0;
  double m_ii = 0;
  double m = 0;
  double sensitivity_as_printed = 0;
  double sensitivity_its_proof_supports = 0;  // NaN when M is negative
};
// n >= 1 rows, bandwidth s of the convention 2 s^2, frobenius_norm of Q.
// INVALID_ARGUMENT naming a field that is not finite or out of range; FAILED_PRECONDITION when the
// printed formula gives no finite positive number.
absl::StatusOr<PublishedGaussianBound> PublishedGaussianSensitivity(int64_t n, double alpha,
                                                                    double bandwidth,
                                                                    int64_t largest_label,
                                                                    double frobenius_norm);

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_H_
