#include "client/privacy/sensitivity/iteration_bounds.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/decompositions.h"

namespace privatemail::client::iteration_bounds {
namespace {

// Range of the normalised weights p = w / sum w of N rows with every w in [m, 1], 0 < m <= 1: p is
// in [1/N - below, 1/N + above].
struct WeightRange {
  double largest = 1;  // 1 / (1 + (N - 1) m)
  double above = 0;
  double below = 0;

  // At least the L2 norm of the vector p - 1/N: it sums to zero, so its mean square is a variance
  // of values within [-below, above], at most above * below (Bhatia and Davis).
  double MaxDeviationNorm(double rows) const { return std::sqrt(rows * above * below); }
};

// rows: N >= 1; span: 1 - m, exact where the subtraction would cancel.
WeightRange NormalizedWeightRange(double rows, double m, double span) {
  // largest - 1/N and 1/N - smallest, without cancellation.
  return {.largest = 1 / (1 + (rows - 1) * m),
          .above = (rows - 1) * span / (rows * (1 + (rows - 1) * m)),
          .below = (rows - 1) * span / (rows * (m + (rows - 1)))};
}

}  // namespace

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

absl::StatusOr<double> L2Bound(const RowMoves& moves, int changed_rows) {
  return FiniteBound(0.5 * std::sqrt(moves.unchanged.squaredNorm() +
                                     changed_rows * moves.changed * moves.changed));
}

absl::StatusOr<double> L1Bound(const RowMoves& moves, int changed_rows, Eigen::Index columns) {
  return FiniteBound(0.5 * std::sqrt(static_cast<double>(columns)) *
                     (moves.unchanged.sum() + changed_rows * moves.changed));
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
