#include "client/privacy/mechanisms/additive_mechanism.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/mechanisms/grid_mechanism.h"
#include "client/privacy/sampling/exact_sampling.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
absl::StatusOr<std::unique_ptr<const Mechanism>> MakeAdditiveMechanism(MechanismTraits::Law law,
                                                                       double width_per_unit,
                                                                       double sensitivity,
                                                                       const ReleaseShape& shape,
                                                                       Guarantee guarantee) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("noise per unit of sensitivity", width_per_unit));
  PM_RETURN_IF_ERROR(CheckFinitePositive("sensitivity", sensitivity));
  const double width = width_per_unit * sensitivity;
  if (!std::isnormal(width)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the noise needs a width of ", width, ", expected a normal number"));
  }
  // A value beyond the floats would be released as infinite, after it was charged. Noise exceeds
  // 100 widths with probability below e^-99.
  if (!(shape.largest_value + 100 * width <= std::numeric_limits<float>::max())) {
    return absl::FailedPreconditionError(absl::StrCat("values of up to ", shape.largest_value,
                                                      " with noise of width ", width,
                                                      " do not fit a 32-bit float"));
  }
  const bool laplace = law == MechanismTraits::Law::kLaplace;
  const auto sample = laplace ? &SampleDiscreteLaplace : &SampleDiscreteGaussian;
  const uint64_t max_width = laplace ? kMaxDiscreteScale : kMaxDiscreteStddev;
  const auto count = static_cast<double>(shape.values);
  const double rounding = laplace ? count : std::sqrt(count);  // of neighbours' distance, in steps
  // The deviation sqrt(r^2 + 16) of the argument in the header is at most r + 1, since r is 8 steps
  // or more.
  const double surplus = laplace ? 0 : 1;
  // In steps, the rounding's share does not depend on the step: a coarser grid may fit.
  for (NoiseGrid grid{std::ilogb(width) - kStepsPerWidthLog2};
       grid.exponent <= std::ilogb(width) - 3; ++grid.exponent) {
    const double steps = std::ceil(grid.InSteps(width) + width_per_unit * rounding) + 1 + surplus;
    if (steps <= static_cast<double>(max_width) &&
        grid.InSteps(shape.largest_value) <= kLargestValueInSteps) {
      const auto draw = [sample, grid, shape, width = static_cast<uint64_t>(steps)](
                            const double* values,
                            BitSource& bits) -> absl::StatusOr<std::vector<int64_t>> {
        PM_ASSIGN_OR_RETURN(std::vector<int64_t> sums,
                            sample(static_cast<size_t>(shape.values), width, bits));
        for (size_t i = 0; i < sums.size(); ++i) {
          sums[i] += grid.Round(values[i], -shape.largest_value, shape.largest_value);
        }
        return sums;
      };
      return std::make_unique<const GridMechanism>(grid,
                                                   (laplace ? M_SQRT2 : 1) * grid.Length(steps),
                                                   shape.values, draw, std::move(guarantee));
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no noise grid fits ", shape.values, " values of up to ", shape.largest_value,
                   " with noise of width ", width, " (", width_per_unit,
                   " for each unit of sensitivity): epsilon or alpha is extreme"));
}

absl::StatusOr<Matrix> NormalStart(int64_t n, int64_t k, double stddev, BitSource& bits) {
  constexpr uint64_t kSteps = uint64_t{1} << kStepsPerWidthLog2;
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> draws,
                      SampleDiscreteGaussian(static_cast<size_t>(n * k), kSteps, bits));
  Matrix start(n, k);
  for (int64_t i = 0; i < n * k; ++i) {
    start.data()[i] = static_cast<double>(draws[static_cast<size_t>(i)]) / kSteps * stddev;
  }
  return start;
}

}  // namespace privatemail::client
