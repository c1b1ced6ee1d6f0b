// Helpers shared by the sensitivity bounds of this folder: input checks, the kernel's range and
// norms. Not installed.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ITERATION_BOUNDS_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ITERATION_BOUNDS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/privacy/sensitivity/sensitivity.h"

namespace privatemail::client::iteration_bounds {

// The checks of IterationInputs that sensitivity.h states.
absl::Status CheckInputs(const IterationInputs& in);

// m = exp(-4/c). FAILED_PRECONDITION: below 1e-150, where products of affinities with the start
// would underflow in double, and a row far from all others would have no neighbours: the proof of
// IterationRoundingError would not hold.
absl::StatusOr<double> SmallestAffinity(double kernel_denominator);

// 1 - m, without the cancellation in a wide kernel.
double AffinitySpan(double kernel_denominator);

// g_i = |alpha (L_Y Q)_i|
Vector LabelPull(const IterationInputs& in);

// The bound plus one part in 10^12 for the rounding of its evaluation. FAILED_PRECONDITION: not
// finite.
absl::StatusOr<double> FiniteBound(double bound);

// L2 bounds on the move of a row of 2 f(X). In L1 each is at most sqrt(k) times as large, k the
// number of columns.
struct RowMoves {
  Vector unchanged;    // A_i of each row that stays
  double changed = 0;  // the largest B_a of a row that changes
};

// The bound on the move of f(X) in this norm; errors of FiniteBound.
absl::StatusOr<double> BoundOnMove(const RowMoves& moves, int changed_rows, Norm norm,
                                   Eigen::Index columns);

}  // namespace privatemail::client::iteration_bounds

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ITERATION_BOUNDS_H_
