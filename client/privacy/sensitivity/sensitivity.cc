#include "client/privacy/sensitivity/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "client/privacy/sensitivity/iteration_bounds.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/decompositions.h"
#include "common/numerics/rounding.h"

namespace privatemail::client {

using namespace iteration_bounds;

absl::StatusOr<double> ReplaceTargetSensitivity(const IterationInputs& in, int changed_rows,
                                                Norm norm) {
  PM_RETURN_IF_ERROR(CheckInputs(in));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("changed_rows", changed_rows, 1, 2));
  PM_ASSIGN_OR_RETURN(const double m, SmallestAffinity(in.kernel_denominator));
  const double c = in.kernel_denominator;
  const auto others = static_cast<double>(in.start.rows() - 1);  // n - 1
  const double t = changed_rows;
  const Vector g = LabelPull(in);
  const double rho = in.start.rowwise().norm().maxCoeff();

  const Vector unchanged = (t * AffinitySpan(in.kernel_denominator) *
                            (2 * rho + g.array() / (others * m)) / (others * m))
                               .matrix();

  const Matrix centred = in.start.rowwise() - in.start.colwise().mean();
  const double spread = SpectralNormBound(centred);
  const double u =
      (others - 1) * -std::expm1(-8 / c) / ((1 + (others - 1) * m) * (m + (others - 1)));
  const double averages = std::min(2 * rho, std::sqrt(others) * u * spread);
  const double largest_pull = g.head(in.slots).maxCoeff();
  return BoundOnMove({unchanged, largest_pull * std::expm1(4 / c) / others + averages},
                     changed_rows, norm, in.start.cols());
}

absl::StatusOr<double> LargestIterateValue(const IterationInputs& in) {
  PM_RETURN_IF_ERROR(CheckInputs(in));
  PM_ASSIGN_OR_RETURN(const double m, SmallestAffinity(in.kernel_denominator));
  const Vector length = in.start.rowwise().norm();
  const double smallest_degree = static_cast<double>(in.start.rows() - 1) * m;
  return FiniteBound(
      0.5 *
      (length.maxCoeff() + length.array() + LabelPull(in).array() / smallest_degree).maxCoeff());
}

absl::StatusOr<double> IterationRoundingError(const IterationInputs& in, int64_t feature_dim) {
  PM_RETURN_IF_ERROR(CheckInputs(in));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("feature_dim", feature_dim, 1, int64_t{1} << 40));
  PM_ASSIGN_OR_RETURN(const double m, SmallestAffinity(in.kernel_denominator));
  const auto n = static_cast<double>(in.start.rows());
  const double of_affinity = 9 * static_cast<double>(feature_dim + 6) / in.kernel_denominator + 8;
  const double of_terms = std::expm1((of_affinity + n) * kUnitRoundoff);
  const double largest = in.start.rowwise().norm().maxCoeff();
  const Vector size = (largest + LabelPull(in).array() / ((n - 1) * m)).matrix();
  return FiniteBound((of_terms / (1 - of_terms) + 3 * kUnitRoundoff) * size.norm());
}

}  // namespace privatemail::client
