#include "client/privacy/sensitivity/iteration_bounds.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/privacy/sensitivity/rounding.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/decompositions.h"

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
  // Bounds add squares: one that underflows or overflows would make the noise too small.
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

double AffinitySpan(double kernel_denominator) { return -std::expm1(-4 / kernel_denominator); }

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

absl::StatusOr<double> L2Bound(const RowMoves& moves, int changed_rows) {
  return FiniteBound(0.5 * std::sqrt(moves.unchanged.squaredNorm() +
                                     changed_rows * moves.changed * moves.changed));
}

absl::StatusOr<double> L1Bound(const RowMoves& moves, int changed_rows, Eigen::Index columns) {
  return FiniteBound(0.5 * std::sqrt(static_cast<double>(columns)) *
                     (moves.unchanged.sum() + changed_rows * moves.changed));
}

double WeightRange::MaxDeviationNorm(double rows) const { return std::sqrt(rows * above * below); }

WeightRange NormalizedWeightRange(double rows, double m, double span) {
  // largest - 1/N and 1/N - smallest, without cancellation.
  return {.largest = 1 / (1 + (rows - 1) * m),
          .above = (rows - 1) * span / (rows * (1 + (rows - 1) * m)),
          .below = (rows - 1) * span / (rows * (m + (rows - 1)))};
}

StartSpread ComputeStartSpread(const Matrix& start, double m, double span) {
  const auto others = static_cast<double>(start.rows() - 1);  // N
  const Matrix centred = start.rowwise() - start.colwise().mean();
  const double norm = SpectralNormBound(centred);
  const WeightRange weights = NormalizedWeightRange(others, m, span);

  StartSpread spread;
  spread.distance = centred.rowwise().norm();
  spread.radius = spread.distance.maxCoeff();
  spread.deviation = std::min(std::sqrt(weights.largest) * norm, spread.radius);
  const double deviation = weights.MaxDeviationNorm(others) * norm;
  spread.average = (deviation + spread.distance.array() / others).min(spread.radius).matrix();
  return spread;
}

}  // namespace privatemail::client::iteration_bounds
