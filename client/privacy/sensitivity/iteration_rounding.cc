#include "client/privacy/sensitivity/iteration_rounding.h"

#include <cmath>

#include "client/privacy/sensitivity/iteration_bounds.h"
#include "client/privacy/sensitivity/rounding.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {

absl::StatusOr<double> IterationRoundingError(const IterationInputs& in, int64_t feature_dim) {
  PM_RETURN_IF_ERROR(iteration_bounds::CheckInputs(in));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("feature_dim", feature_dim, 1, int64_t{1} << 40));
  PM_ASSIGN_OR_RETURN(const double m, iteration_bounds::SmallestAffinity(in));
  const auto n = static_cast<double>(in.start.rows());
  const double of_affinity = 9 * static_cast<double>(feature_dim + 6) / in.kernel_denominator + 8;
  const double of_terms = std::expm1((of_affinity + n) * kUnitRoundoff);
  const double largest = in.start.rowwise().norm().maxCoeff();
  const Vector size = (largest + iteration_bounds::LabelPull(in).array() / ((n - 1) * m)).matrix();
  return iteration_bounds::FiniteBound((of_terms / (1 - of_terms) + 3 * kUnitRoundoff) *
                                       size.norm());
}

}  // namespace privatemail::client
