// What the bounds on one iteration share. For this room's own sources.
#ifndef PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ITERATION_BOUNDS_H_
#define PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ITERATION_BOUNDS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/privacy/sensitivity/sensitivity.h"

namespace privatemail::client::iteration_bounds {

// The checks that sensitivity.h promises for IterationInputs.
absl::Status CheckInputs(const IterationInputs& in);

// Below, products of affinities with the start would underflow in double, and a row far from all
// others would be taken for one without neighbours: iteration_rounding.h would not hold.
inline constexpr double kSmallestAffinity = 1e-150;

// m = exp(-4/c), or why the kernel cannot be bounded.
absl::StatusOr<double> SmallestAffinity(double kernel_denominator);
absl::StatusOr<double> SmallestAffinity(const IterationInputs& in);

// 1 - m, which cancels in a wide kernel when it is taken from m.
double AffinitySpan(double kernel_denominator);
double AffinitySpan(const IterationInputs& in);

// INVALID_ARGUMENT naming the first row whose length differs from 1 by more than UnitRows leaves,
// (d
// + 8) u: iteration_rounding.h counts on no more.
absl::Status CheckAnchorLengths(const Matrix& anchors);

// |A|_op of a matrix with at least one entry.
double OperatorNorm(const Matrix& matrix);

// g_i = |alpha (L_Y Q)_i|
Vector LabelPull(const IterationInputs& in);

// The bound and one part in 10^12, which covers the rounding of its evaluation; FAILED_PRECONDITION
// when it is not finite.
absl::StatusOr<double> FiniteBound(double bound);

// How far rows of 2 f(X) move in L2: A_i for each row that stays, the largest B_a for one that
// changes. Each row's move in L2 costs at most sqrt(k) of it in L1, k its columns.
struct RowMoves {
  Vector stays;
  double changes = 0;
};

// Of f(X) as a whole; errors of FiniteBound.
absl::StatusOr<double> InL2(const RowMoves& moves, int changed_rows);
absl::StatusOr<double> InL1(const RowMoves& moves, int changed_rows, Eigen::Index columns);

}  // namespace privatemail::client::iteration_bounds

#endif  // PRIVATEMAIL_CLIENT_PRIVACY_SENSITIVITY_ITERATION_BOUNDS_H_
