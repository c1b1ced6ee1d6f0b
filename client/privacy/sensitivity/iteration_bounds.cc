#include "client/privacy/sensitivity/iteration_bounds.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client::iteration_bounds {
absl::Status CheckInputs(const IterationInputs& in) {
  PM_RETURN_IF_ERROR(CheckBetween("alpha", in.alpha, 0, 1e30));
  PM_RETURN_IF_ERROR(CheckFinitePositive("kernel denominator", in.kernel_denominator));
  const auto n = static_cast<int64_t>(in.start.rows());
  if (n < 2)
    return absl::InvalidArgumentError(
        absl::StrCat("the iteration needs at least 2 rows, but has ", n));
  if (in.label_graph.size() != n) {
    return InvalidField("labels", absl::StrCat("must be as many as the start's ", n,
                                               " rows, but are ", in.label_graph.size()));
  }
  PM_RETURN_IF_ERROR(CheckIntegerBetween("slots", in.slots, 1, n));
  if (!in.start.allFinite())
    return absl::InvalidArgumentError("the start must be finite, but is not");
  // Bounds add squares: one that underflows or overflows would make the noise too small.
  PM_RETURN_IF_ERROR(CheckBetween("kernel denominator", in.kernel_denominator, 0, 1e12));
  return CheckBetween("largest value of the start", in.start.cwiseAbs().maxCoeff(), 1e-100, 1e100);
}

absl::StatusOr<double> SmallestAffinity(double kernel_denominator) {
  constexpr double kSmallestAffinity = 1e-150;
  const double m = std::exp(-4 / kernel_denominator);
  if (!(m >= kSmallestAffinity)) {
    return absl::FailedPreconditionError(
        absl::StrCat("kernel_bandwidth is too small: opposite unit vectors have affinity exp(-4 / ",
                     kernel_denominator, ") = ", m, ", expected at least ", kSmallestAffinity,
                     ", so no sensitivity can be proven"));
  }
  return m;
}

double AffinitySpan(double kernel_denominator) { return -std::expm1(-4 / kernel_denominator); }

absl::StatusOr<double> FiniteBound(double bound) {
  if (!std::isfinite(bound)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the sensitivity bound is ", bound,
                     ", expected a finite number: alpha or start_stddev is "
                     "extreme, or kernel_bandwidth too small"));
  }
  return bound * (1 + 1e-12);
}

Vector LabelPull(const IterationInputs& in) {
  return in.alpha * in.label_graph.MultiplyLaplacian(in.start).rowwise().norm();
}

absl::StatusOr<double> BoundOnMove(const RowMoves& moves, int changed_rows, Norm norm,
                                   Eigen::Index columns) {
  if (norm == Norm::kL1) {
    return FiniteBound(0.5 * std::sqrt(static_cast<double>(columns)) *
                       (moves.unchanged.sum() + changed_rows * moves.changed));
  }
  return FiniteBound(0.5 * std::sqrt(moves.unchanged.squaredNorm() +
                                     changed_rows * moves.changed * moves.changed));
}

}  // namespace privatemail::client::iteration_bounds
