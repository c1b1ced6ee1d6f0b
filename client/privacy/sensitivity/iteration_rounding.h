// What double precision adds to one private iteration.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ITERATION_ROUNDING_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ITERATION_ROUNDING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/privacy/sensitivity/sensitivity.h"

namespace privatemail::client {

// Proven: an upper bound on |f^ - f|_F. f^ is what a release computes: UnitRows, then SmlqUpdate.
// f = (F + Q)/2 with F_i = (l_i + sum_{j != i} w_ij q_j) / D_i is exact, over the rows scaled to
// length 1 exactly, with l alpha times the *computed* L_Y Q. That is the f that the bounds of
// sensitivity.h, known_anchors_sensitivity.h and lipschitz.h bound: they hold whatever l is, as
// long as it is the same for both neighbours, as public values computed once are, and take its
// lengths for g_i. (From f with the exact L_Y Q it may differ by more.) Both the bound (through
// LabelPull) and the release (through SmlqUpdate) take L_Y Q from LabelGraph::AddLaplacian, so it
// is one value, and rounding its product with alpha is within the 1e-12 that FiniteBound adds. Both
// neighbours are computed with rounding, so twice this is added to a sensitivity before
// calibration.
//
// Proof, in units of u = 2^-53 and to first order. d is feature_dim, m = exp(-4/c).
// *Scaling a row* to length 1 sums d squares, takes a root and divides: the length is off by at
// most d/2 + 3 of it, each coordinate by one more, the row by d/2 + 4. So two rows' distance is off
// by at most d + 8, and its square, at most 4, by 4 (d + 8). *A squared distance* is taken as |x|^2
// + |y|^2 - 2 x.y. A product of d terms is off by at most d in any order of its additions, all
// three together by 4 d; two subtractions, of at most 3 and 4, add
// 7. What is negative becomes 0, which is nearer.
// *An affinity* multiplies that by 1/c, which adds 8/c to its logarithm, and takes exp, 8 more of
// them at the most: the logarithm is off by at most a = (8 d + 47) / c + 8. *A sum over a row*, in
// any order and fused with its products or not, has each term off by n more. (A dummy that is an
// anchor's copy adds its value to the anchor's before both are multiplied with their one affinity,
// and has affinity 1 to it, exactly: bordered_affinity.h. That is another order.) Every term of sum
// w_j q_j and of D hence carries a factor within 1 +- t, t = expm1((a + n) u). So
//   |F^_i - F_i| <= (t sum w_j |q_j| + t |l_i| + |F_i| t D_i) / ((1 - t) D_i)
//               <= 2 t/(1-t) size_i,  size_i = max |q_j| + g_i / ((n-1) m) >= |F_i|, |q_i|.
// *The mean with q_i*: half of that, and adding l_i, dividing and adding q_i round by at most 2
// size_i. Together at most (t/(1-t) + 3 u) size_i a row.
// The code has 9 (d + 6) for 8 d + 47, which covers what is of second order for d up to 2^40.
// Nothing underflows that counts: m is at least 1e-150, and the largest q_j 1e-100.
//
// Errors as ReplaceTargetSensitivity, and INVALID_ARGUMENT: feature_dim outside [1, 2^40].
absl::StatusOr<double> IterationRoundingError(const IterationInputs& inputs, int64_t feature_dim);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ITERATION_ROUNDING_H_
