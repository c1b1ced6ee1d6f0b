#include "client/privacy/sensitivity/iteration_bounds.h"

#include <Eigen/SVD>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/privacy/sensitivity/rounding.h"
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
    return absl::InvalidArgumentError(absl::StrCat("labels must be as many as the start's ", n,
                                                   " rows, but are ", in.label_graph.size()));
  }
  PM_RETURN_IF_ERROR(CheckIntegerBetween("slots", in.slots, 1, n));
  if (!in.start.allFinite())
    return absl::InvalidArgumentError("the start must be finite, but is not");
  // Bounds add squares up: none may vanish or overflow, or the noise would be too small.
  PM_RETURN_IF_ERROR(CheckBetween("kernel denominator", in.kernel_denominator, 0, 1e12));
  return CheckBetween("largest value of the start", in.start.cwiseAbs().maxCoeff(), 1e-100, 1e100);
}

absl::StatusOr<double> SmallestAffinity(double kernel_denominator) {
  const double m = std::exp(-4 / kernel_denominator);
  if (!(m >= kSmallestAffinity)) {
    return absl::FailedPreconditionError(
        absl::StrCat("kernel_bandwidth is too small: opposite unit vectors have affinity exp(-4 / ",
                     kernel_denominator, ") = ", m, ", expected at least ", kSmallestAffinity,
                     ", so no sensitivity can be proven"));
  }
  return m;
}

absl::StatusOr<double> SmallestAffinity(const IterationInputs& in) {
  return SmallestAffinity(in.kernel_denominator);
}

double AffinitySpan(double kernel_denominator) { return -std::expm1(-4 / kernel_denominator); }

double AffinitySpan(const IterationInputs& in) { return AffinitySpan(in.kernel_denominator); }

absl::Status CheckAnchorLengths(const Matrix& anchors) {
  const double rounding = (static_cast<double>(anchors.cols()) + 8) * kUnitRoundoff;
  for (Eigen::Index i = 0; i < anchors.rows(); ++i) {
    const double length = anchors.row(i).norm();
    if (!(std::abs(length - 1) <= rounding)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("anchors row %d must have length 1, but has %.17g", i, length));
    }
  }
  return absl::OkStatus();
}

double OperatorNorm(const Matrix& matrix) {
  const Eigen::BDCSVD<Matrix> decomposition(matrix);
  // Without convergence no bound is known, and FiniteBound refuses.
  if (decomposition.info() != Eigen::Success) return std::numeric_limits<double>::infinity();
  return decomposition.singularValues()[0];
}

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

absl::StatusOr<double> InL2(const RowMoves& moves, int changed_rows) {
  return FiniteBound(
      0.5 * std::sqrt(moves.stays.squaredNorm() + changed_rows * moves.changes * moves.changes));
}

absl::StatusOr<double> InL1(const RowMoves& moves, int changed_rows, Eigen::Index columns) {
  return FiniteBound(0.5 * std::sqrt(static_cast<double>(columns)) *
                     (moves.stays.sum() + changed_rows * moves.changes));
}

}  // namespace privatemail::client::iteration_bounds
