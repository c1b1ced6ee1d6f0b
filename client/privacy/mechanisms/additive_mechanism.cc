#include "client/privacy/mechanisms/additive_mechanism.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/mechanisms/noise_grid.h"
#include "client/privacy/sampling/exact_sampling.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client {
namespace {

// A width is the Gaussian's standard deviation or the Laplace's scale.
struct DiscreteLaw {
  absl::StatusOr<std::vector<int64_t>> (*sample)(size_t count, uint64_t width, BitSource& bits);
  uint64_t max_width;  // in steps
  double stddev_per_width;
};

const DiscreteLaw kGaussianLaw = {&SampleDiscreteGaussian, kMaxDiscreteStddev, 1};
const DiscreteLaw kLaplaceLaw = {&SampleDiscreteLaplace, kMaxDiscreteScale, M_SQRT2};

class AdditiveMechanism final : public Mechanism {
 public:
  AdditiveMechanism(const DiscreteLaw& law, NoiseGrid grid, uint64_t width,
                    const ReleaseShape& shape, Guarantee guarantee)
      : Mechanism(std::move(guarantee)), law_(law), grid_(grid), width_(width), shape_(shape) {}

  absl::StatusOr<FloatMatrix> Release(const Matrix& values, BitSource& bits) const override {
    return ReleaseAs<FloatMatrix>(values, bits);
  }

  absl::StatusOr<Matrix> ReleaseInDouble(const Matrix& values, BitSource& bits) const override {
    return ReleaseAs<Matrix>(values, bits);
  }

  double noise_stddev() const override {
    return law_.stddev_per_width * grid_.Length(static_cast<double>(width_));
  }

 private:
  template <typename Released>
  absl::StatusOr<Released> ReleaseAs(const Matrix& values, BitSource& bits) const {
    if (values.size() != shape_.values) {
      return absl::InvalidArgumentError(absl::StrCat("the mechanism was made for ", shape_.values,
                                                     " values, but got ", values.size()));
    }
    PM_ASSIGN_OR_RETURN(const std::vector<int64_t> noise,
                        law_.sample(static_cast<size_t>(shape_.values), width_, bits));
    Released released(values.rows(), values.cols());
    for (int64_t i = 0; i < shape_.values; ++i) {
      released.data()[i] = grid_.To<typename Released::Scalar>(
          noise[static_cast<size_t>(i)] +
          grid_.Round(values.data()[i], -shape_.largest_value, shape_.largest_value));
    }
    return released;
  }

  const DiscreteLaw& law_;
  const NoiseGrid grid_;
  const uint64_t width_;  // in steps
  const ReleaseShape shape_;
};

// rounding_steps: added by rounding to the distance of two neighbours, in steps. surplus: extra
// steps of width that the law needs.
absl::StatusOr<std::unique_ptr<const Mechanism>> MakeOnGrid(
    const DiscreteLaw& law, double width_per_unit, double sensitivity, double rounding_steps,
    double surplus, const ReleaseShape& shape, Guarantee guarantee) {
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
  // In steps, the rounding's share does not depend on the step: a coarser grid may fit. At least
  // eight steps per width: see MakeGaussianMechanism.
  for (NoiseGrid grid{std::ilogb(width) - kStepsPerWidthLog2};
       grid.exponent <= std::ilogb(width) - 3; ++grid.exponent) {
    const double steps =
        std::ceil(grid.InSteps(width) + width_per_unit * rounding_steps) + 1 + surplus;
    if (steps <= static_cast<double>(law.max_width) &&
        grid.InSteps(shape.largest_value) <= kLargestValueInSteps) {
      return std::make_unique<const AdditiveMechanism>(law, grid, static_cast<uint64_t>(steps),
                                                       shape, std::move(guarantee));
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no noise grid fits ", shape.values, " values of up to ", shape.largest_value,
                   " with noise of width ", width, " (", width_per_unit,
                   " for each unit of sensitivity): epsilon or alpha is extreme"));
}

}  // namespace

absl::Status CheckReleaseShape(const ReleaseShape& shape) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("number of values", shape.values, 1, int64_t{1} << 28));
  return CheckFinitePositive("largest_value", shape.largest_value);
}

absl::StatusOr<std::unique_ptr<const Mechanism>> MakeGaussianMechanism(double stddev_per_unit,
                                                                       double l2_sensitivity,
                                                                       const ReleaseShape& shape,
                                                                       Guarantee guarantee) {
  PM_RETURN_IF_ERROR(CheckReleaseShape(shape));
  // The deviation sqrt(r^2 + 16) of the argument in additive_mechanism.h is at most r + 1, since r
  // is 8 steps or more.
  return MakeOnGrid(kGaussianLaw, stddev_per_unit, l2_sensitivity,
                    std::sqrt(static_cast<double>(shape.values)), 1, shape, std::move(guarantee));
}

absl::StatusOr<std::unique_ptr<const Mechanism>> MakeLaplaceMechanism(double scale_per_unit,
                                                                      double l1_sensitivity,
                                                                      const ReleaseShape& shape,
                                                                      Guarantee guarantee) {
  PM_RETURN_IF_ERROR(CheckReleaseShape(shape));
  return MakeOnGrid(kLaplaceLaw, scale_per_unit, l1_sensitivity, static_cast<double>(shape.values),
                    0, shape, std::move(guarantee));
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
