// Sensitivity of one private iteration to replacing the target, in L2 and L1, over the unit rows X:
//   f(X) = 1/2 Diag(L_X)^+ (alpha L_Y - L_X) Q + Q.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_SENSITIVITY_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_SENSITIVITY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/matrix.h"
#include "common/embedding/label_graph.h"

namespace privatemail::client {

// The public side of one iteration: everything that the bounds depend on.
struct IterationInputs {
  const Matrix& start;            // Q, n x k, drawn independently of the data
  const LabelGraph& label_graph;  // L_Y over the labels by slot, then the anchors'
  double alpha = 0;
  double kernel_denominator = 0;  // c of exp(-|x - y|^2 / c)
  int64_t slots = 0;              // the first `slots` rows may hold the target
};

// Adds up the entries of f(X) - f(X'): their absolute values for Laplace noise, their squares
// (Frobenius) for Gaussian noise.
enum class Norm { kL1, kL2 };

// Proven (PRIVACY.md section 4): an upper bound on |f(X) - f(X')| over all unit rows X and X'
// that differ in `changed_rows` slot rows:
// - 2: the target may be replaced by one of any class (its old slot gets its dummy back, its new
//   slot loses one);
// - 1: the class is public and stays.
//
// With m = exp(-4/c) the smallest kernel value of unit rows, D_i in [(n-1) m, n-1] a degree,
// g_i = |alpha (L_Y Q)_i|, rho = max |q_j|, t = changed_rows, rows move by at most
//   a row that stays:    A_i = t (1-m) (2 rho + g_i / ((n-1) m)) / ((n-1) m),
//   a row that changes:  B_a = g_a expm1(4/c) / (n-1) + min(2 rho, sqrt(n-1) u |Q - mean Q|_op),
//                        u = (n-2) (1-m^2) / ((1 + (n-2) m) (m + n-2)),
// and D = 1/2 sqrt(sum_i A_i^2 + t max_slot B_a^2) in L2. A row's move in L1 is at most sqrt(k)
// times its move in L2, so D = sqrt(k)/2 (sum_i A_i + t max_slot B_a) in L1.
//
// - INVALID_ARGUMENT: fewer than 2 rows; slots outside [1, n]; changed_rows other than 1 or 2; a
//   value not finite; alpha outside [0, 1e30]; c outside (0, 1e12]; max |q_ij| outside
//   [1e-100, 1e100].
// - FAILED_PRECONDITION: exp(-4/c) is below 1e-150, or the bound is not finite.
absl::StatusOr<double> ReplaceTargetSensitivity(const IterationInputs& inputs, int changed_rows,
                                                Norm norm);

// An upper bound on the magnitude of every entry of f(X), from public values only: half of
// max_i (rho + |q_i| + g_i / ((n-1) m)). Errors as above.
absl::StatusOr<double> LargestIterateValue(const IterationInputs& inputs);

// Proven: an upper bound on |f^ - f|_F, the rounding error of a release in double precision. Add
// twice this to a sensitivity before calibration, as both neighbours are rounded.
// - f^ is the computed release: UnitRows, then SmlqUpdate.
// - f = (F + Q)/2 with F_i = (l_i + sum_{j != i} w_ij q_j) / D_i is exact, over the rows scaled to
//   length 1 exactly, with l alpha times the *computed* L_Y Q. The bounds of this header, of
//   known_anchors_sensitivity.h and of lipschitz.h hold for this f: they take the lengths of l for
//   g_i and hold for every l that is equal for both neighbours, as public values computed once are.
//   (From f with the exact L_Y Q the distance may be larger.)
// - The bound (through LabelPull) and the release (through SmlqUpdate) take L_Y Q from
//   LabelGraph::AddLaplacian, so it is one value; rounding its product with alpha is within the
//   1e-12 that FiniteBound adds.
//
// Proof, in units of u = 2^-53 and to first order. d is feature_dim, m = exp(-4/c).
// *Scaling a row* to length 1 sums d squares, takes a root and divides: the length is off by at
// most d/2 + 3 of it, each coordinate by one more, the row by d/2 + 4. So two rows' distance is off
// by at most d + 8, and its square, at most 4, by 4 (d + 8).
// *A squared distance* is taken as |x|^2 + |y|^2 - 2 x.y. A product of d terms is off by at most d
// in any order of its additions, all three together by 4 d; two subtractions, of at most 3 and 4,
// add 7. A negative result becomes 0, which is nearer.
// *An affinity* multiplies that by 1/c, which adds 8/c to its logarithm, and takes exp, at most 8
// more: the logarithm is off by at most a = (8 d + 47) / c + 8.
// *A sum over a row*, in any order and fused with its products or not, has each term off by n more.
// (A dummy that is an anchor's copy adds its value to the anchor's before both are multiplied with
// their one affinity, and has affinity 1 to it, exactly: bordered_affinity.h. That is another
// order.) Every term of sum w_j q_j and of D hence carries a factor within 1 +- t, t = expm1((a +
// n) u). So
//   |F^_i - F_i| <= (t sum w_j |q_j| + t |l_i| + |F_i| t D_i) / ((1 - t) D_i)
//               <= 2 t/(1-t) size_i,  size_i = max |q_j| + g_i / ((n-1) m) >= |F_i|, |q_i|.
// *The mean with q_i*: half of that, and adding l_i, dividing and adding q_i round by at most 2
// size_i. Together at most (t/(1-t) + 3 u) size_i a row.
// The code has 9 (d + 6) for 8 d + 47, which covers the second order for d up to 2^40. Nothing that
// counts underflows: m is at least 1e-150, and the largest q_j 1e-100.
//
// Errors as above, and INVALID_ARGUMENT: feature_dim outside [1, 2^40].
absl::StatusOr<double> IterationRoundingError(const IterationInputs& inputs, int64_t feature_dim);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_SENSITIVITY_H_
