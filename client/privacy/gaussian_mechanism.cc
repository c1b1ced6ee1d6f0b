#include "client/privacy/gaussian_mechanism.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/calibration.h"
#include "client/privacy/exact_sampling.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {
namespace {

constexpr int kStepsPerStddevLog2 = 30;
// A value of this many steps leaves room in 64 bits for any noise that will ever be drawn.
constexpr double kLargestValueInSteps = 0x1p61;

}  // namespace

absl::StatusOr<Mechanism> MechanismFromName(absl::string_view name) {
  for (const Mechanism mechanism : {Mechanism::kGaussian, Mechanism::kPublishedGaussian}) {
    if (name == NameOf(mechanism)) return mechanism;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("mechanism must be gaussian or published-gaussian, but is \"", name, "\""));
}

absl::string_view NameOf(Mechanism mechanism) {
  return mechanism == Mechanism::kGaussian ? "gaussian" : "published-gaussian";
}

absl::StatusOr<double> GaussianStddevPerUnit(Mechanism mechanism, double epsilon, double delta) {
  return mechanism == Mechanism::kGaussian ? AnalyticGaussianStddev(epsilon, delta)
                                           : PublishedGaussianStddev(epsilon, delta);
}

absl::StatusOr<GaussianMechanism> GaussianMechanism::Create(double stddev_per_unit,
                                                            double l2_sensitivity, int64_t values,
                                                            double largest_value) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("stddev_per_unit", stddev_per_unit));
  PM_RETURN_IF_ERROR(CheckFinitePositive("sensitivity", l2_sensitivity));
  PM_RETURN_IF_ERROR(CheckIntegerBetween("number of values", values, 1, int64_t{1} << 28));
  PM_RETURN_IF_ERROR(CheckFinitePositive("largest_value", largest_value));
  const double stddev = stddev_per_unit * l2_sensitivity;
  if (!std::isnormal(stddev)) {
    return absl::FailedPreconditionError(absl::StrCat("the noise needs a standard deviation of ",
                                                      stddev, ", expected a normal number"));
  }
  const double rounding = stddev_per_unit * std::sqrt(static_cast<double>(values));
  // The rounding's share shrinks with the step, but in steps it stays: a step or two larger must
  // do.
  for (int exponent = std::ilogb(stddev) - kStepsPerStddevLog2; exponent < std::ilogb(stddev);
       ++exponent) {
    // + 2: one for rounding up, one for the deviation 4 of the smoothing argument.
    const double steps = std::ceil(std::ldexp(stddev, -exponent) + rounding) + 2;
    if (steps <= static_cast<double>(kMaxDiscreteStddev) &&
        std::ldexp(largest_value, -exponent) <= kLargestValueInSteps) {
      return GaussianMechanism(exponent, static_cast<uint64_t>(steps), values, largest_value);
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no noise grid fits ", values, " values of up to ", largest_value,
                   " with a standard deviation of ", stddev, " (", stddev_per_unit,
                   " for each unit of sensitivity): epsilon is too small or alpha too large"));
}

double GaussianMechanism::noise_stddev() const {
  return std::ldexp(static_cast<double>(stddev_in_steps_), grid_exponent_);
}

absl::StatusOr<FloatMatrix> GaussianMechanism::Release(const Matrix& values,
                                                       BitSource& bits) const {
  if (values.size() != values_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the mechanism was made for ", values_, " values, but got ", values.size()));
  }
  PM_ASSIGN_OR_RETURN(std::vector<int64_t> sum,
                      SampleDiscreteGaussian(static_cast<size_t>(values_), stddev_in_steps_, bits));
  FloatMatrix released(values.rows(), values.cols());
  for (int64_t i = 0; i < values_; ++i) {
    // fmin and fmax, unlike clamp, also bring NaN into the range.
    const double value = std::fmin(std::fmax(values.data()[i], -largest_value_), largest_value_);
    sum[static_cast<size_t>(i)] +=
        static_cast<int64_t>(std::rint(std::ldexp(value, -grid_exponent_)));
    released.data()[i] =
        std::ldexp(static_cast<float>(sum[static_cast<size_t>(i)]), grid_exponent_);
  }
  return released;
}

absl::StatusOr<Matrix> NormalStart(int64_t n, int64_t k, double stddev, BitSource& bits) {
  constexpr uint64_t kSteps = uint64_t{1} << kStepsPerStddevLog2;
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> draws,
                      SampleDiscreteGaussian(static_cast<size_t>(n * k), kSteps, bits));
  Matrix start(n, k);
  for (int64_t i = 0; i < n * k; ++i) {
    start.data()[i] = static_cast<double>(draws[static_cast<size_t>(i)]) / kSteps * stddev;
  }
  return start;
}

}  // namespace privatemail
