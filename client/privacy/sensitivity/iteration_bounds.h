// Helpers shared by the sensitivity bounds of this folder: input checks, the kernel's range, ranges
// of weighted averages, and norms. Not installed.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ITERATION_BOUNDS_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ITERATION_BOUNDS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/privacy/sensitivity/sensitivity.h"

namespace privatemail::client::iteration_bounds {

// The checks of IterationInputs that sensitivity.h states.
absl::Status CheckInputs(const IterationInputs& in);

// Below it, products of affinities with the start would underflow in double, and a row far from all
// others would have no neighbours: the proof of IterationRoundingError would not hold.
inline constexpr double kSmallestAffinity = 1e-150;

// m = exp(-4/c). FAILED_PRECONDITION: below kSmallestAffinity.
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

// Bounds on the move of f(X); errors of FiniteBound.
absl::StatusOr<double> L2Bound(const RowMoves& moves, int changed_rows);
absl::StatusOr<double> L1Bound(const RowMoves& moves, int changed_rows, Eigen::Index columns);

// Public quantities of the start Q (n x k, n >= 2) under weights p = w / sum w over the n - 1 rows
// other than one's own, each w within [m, 1], 0 < m <= 1: the kernel's range on unit rows. Every p
// is then between p_min = m / (m + n - 2) and p_max = 1 / (1 + (n - 2) m).
struct StartSpread {
  Vector distance;       // n: |q_j - mean Q|
  double radius = 0;     // the largest distance
  double deviation = 0;  // at least the deviation of u.q under p, for every unit u and every p
  Vector average;        // n: at least |average of q under p - mean Q|, row i's own row left out
};

// Proof. Let N = n - 1 and Qc = Q - mean Q. *Deviation:* Var_p(u.q) <= sum p_j (u.(q_j - mean))^2
// <= p_max |Qc u|^2, and at most radius^2. *Average:* the coefficients p_j - 1/N sum to zero, so
// their mean square is a variance of values within [p_min - 1/N, p_max - 1/N], at most (p_max -
// 1/N) (1/N - p_min) (Bhatia and Davis). Hence |sum_j (p_j - 1/N)(q_j - mean Q)| <= sqrt(N (p_max -
// 1/N) (1/N - p_min)) |Qc|_op; the plain average over the other rows is |q_i - mean Q| / N from
// mean Q. The average of points within the radius is itself within it.
StartSpread ComputeStartSpread(const Matrix& start, double smallest_affinity, double affinity_span);

}  // namespace privatemail::client::iteration_bounds

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ITERATION_BOUNDS_H_
