#include "client/privacy/mechanisms/make_mechanism.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/guarantee_fields.h"
#include "client/privacy/mechanisms/additive_mechanism.h"
#include "client/privacy/mechanisms/bounded_gaussian_calibration.h"
#include "client/privacy/mechanisms/calibration.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/rounding.h"

namespace privatemail::client {
namespace {

using Law = MechanismTraits::Law;
using Protects = MechanismTraits::Protects;

absl::Status CheckGiven(const MechanismTraits& traits, const char* field, bool wanted, bool given) {
  if (wanted == given) return absl::OkStatus();
  return InvalidField(
      field, absl::StrCat(wanted ? "must be given for " : "is not accepted by ", traits.name));
}

// Refuses a missing parameter of the kind, and one that the kind does not use.
absl::Status CheckParametersGiven(const MechanismTraits& traits, const MechanismParameters& p) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("epsilon", p.epsilon));
  const bool of_value = traits.protects == Protects::kValue;
  const bool zero_delta = p.delta == 0 && !traits.TakesDelta();  // allowed for pure laws
  PM_RETURN_IF_ERROR(
      CheckGiven(traits, "delta", traits.TakesDelta(), p.delta.has_value() && !zero_delta));
  PM_RETURN_IF_ERROR(CheckGiven(traits, "sensitivity", of_value, p.sensitivity.has_value()));
  PM_RETURN_IF_ERROR(CheckRadiusGiven(traits, p.radius.has_value()));
  const bool other_norm = p.norm != kDefaultNorm;
  PM_RETURN_IF_ERROR(CheckGiven(traits, "norm", !of_value && other_norm, other_norm));
  PM_RETURN_IF_ERROR(CheckGiven(traits, "lipschitz", traits.protects == Protects::kOutput,
                                p.lipschitz.has_value()));
  return CheckGiven(traits, "box (lower and upper ends)", traits.law == Law::kBoundedGaussian,
                    !p.box.lower.empty() || !p.box.upper.empty());
}

absl::Status CheckReleaseShape(const ReleaseShape& shape) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("number of values", shape.values, 1, int64_t{1} << 28));
  return CheckFinitePositive("largest_value", shape.largest_value);
}

Guarantee GuaranteeOf(const MechanismParameters& p) {
  const MechanismTraits& traits = TraitsOf(p.kind);
  const char* const norm = traits.law != Law::kLaplace ? "L2"
                           : traits.published          ? "L2, as printed"
                                                       : "L1";
  const bool of_value = traits.protects == Protects::kValue;
  return {.epsilon = p.epsilon,
          .delta = traits.TakesDelta() ? *p.delta : 0,
          .neighbours = of_value ? NeighboursOfValue(*p.sensitivity, norm)
                                 : "any two inputs at most the radius apart",
          .radius = p.radius,
          .metric = of_value ? "" : absl::StrCat("l", FormatExact(p.norm)),
          .proven = !traits.published,
          .source = traits.source};
}

struct AdditiveNoise {
  double sensitivity = 0;  // the largest distance between the values of neighbours
  double width = 0;        // for it: the Gaussian's standard deviation or the Laplace's scale
  Guarantee guarantee;
};

// The sensitivity of a ball: radius times Lipschitz constant.
absl::StatusOr<double> BallSensitivity(const MechanismParameters& p, int64_t values) {
  double lipschitz = 0;
  if (TraitsOf(p.kind).protects == Protects::kInput) {
    PM_ASSIGN_OR_RETURN(lipschitz, IdentityLipschitz(values, p.norm));
  } else {
    lipschitz = *p.lipschitz;
  }
  PM_RETURN_IF_ERROR(CheckFinitePositive("radius", *p.radius));
  if (!(p.norm >= 1)) {
    return FieldError("norm", "at least 1", absl::StrCat(p.norm));
  }
  PM_RETURN_IF_ERROR(CheckFinitePositive("lipschitz", lipschitz));
  const double sensitivity = *p.radius * lipschitz;
  if (std::isnormal(sensitivity * kRoundedUp)) return sensitivity;
  return absl::InvalidArgumentError(
      absl::StrCat("radius times Lipschitz constant must be a normal number, but is ", *p.radius,
                   " * ", lipschitz, " = ", sensitivity * kRoundedUp));
}

absl::StatusOr<AdditiveNoise> CalibrateAdditive(const MechanismParameters& p, int64_t values) {
  const MechanismTraits& traits = TraitsOf(p.kind);
  AdditiveNoise noise;
  double bound = 0;  // of the sensitivity, rounded up where it is a product
  if (traits.protects == Protects::kValue) {
    noise.sensitivity = bound = *p.sensitivity;
  } else {
    PM_ASSIGN_OR_RETURN(noise.sensitivity, BallSensitivity(p, values));
    bound = noise.sensitivity * kRoundedUp;
  }
  if (traits.law == Law::kLaplace) {
    PM_ASSIGN_OR_RETURN(noise.width, LaplaceScale(p.epsilon, bound));
    noise.guarantee = GuaranteeOf(p);
    return noise;
  }
  PM_ASSIGN_OR_RETURN(const double per_unit, traits.published
                                                 ? PublishedGaussianStddev(p.epsilon, *p.delta)
                                                 : AnalyticGaussianStddev(p.epsilon, *p.delta));
  PM_RETURN_IF_ERROR(CheckFinitePositive("sensitivity", bound));
  noise.width = per_unit * bound * kRoundedUp;
  if (!std::isnormal(noise.width)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the noise's standard deviation must be a normal number, but sensitivity ",
                     bound, " times ", per_unit, " makes it ", noise.width));
  }
  noise.guarantee = GuaranteeOf(p);
  if (!traits.published) noise.guarantee.gaussian_mu = kRoundedUp / per_unit;
  return noise;
}

// Repeats a single side for every value.
absl::StatusOr<Box> ExpandBox(const MechanismParameters& p, int64_t values) {
  Box box = p.box;
  const auto wanted = static_cast<size_t>(values);
  for (std::vector<double>* ends : {&box.lower, &box.upper}) {
    if (ends->size() == 1) ends->resize(wanted, ends->front());
    if (ends->size() != wanted) {
      return InvalidField(ends == &box.lower ? "lower" : "upper",
                          absl::StrCat("must have one end, or one for each of the ", values,
                                       " values, but has ", ends->size()));
    }
  }
  return box;
}

Guarantee BoundedGuarantee(const MechanismParameters& p, const Box& box) {
  Guarantee guarantee = GuaranteeOf(p);
  guarantee.neighbours = NeighboursInBox(box.lower, box.upper, *p.sensitivity);
  if (TraitsOf(p.kind).published && box.lower.size() == 1) {
    guarantee.source =
        "The Bounded Gaussian Mechanism, theorem 6: as published, not a proven guarantee";
  }
  return guarantee;
}

}  // namespace

absl::StatusOr<int64_t> ValueCount(const MechanismParameters& parameters,
                                   const std::optional<int64_t>& dimension) {
  const MechanismTraits& traits = TraitsOf(parameters.kind);
  const bool on_input = traits.protects == MechanismTraits::Protects::kInput;
  const bool boxed = traits.law == MechanismTraits::Law::kBoundedGaussian;
  if (dimension.has_value()) {
    if (!on_input && !boxed) {
      return InvalidField("dimension", absl::StrCat("is not accepted by ", traits.name));
    }
    PM_RETURN_IF_ERROR(CheckIntegerBetween("dimension", *dimension, 1, int64_t{1} << 40));
    return *dimension;
  }
  if (on_input) {
    return InvalidField("dimension", absl::StrCat("must be given for ", traits.name,
                                                  ": the number of coordinates of the input"));
  }
  return std::max<int64_t>(static_cast<int64_t>(parameters.box.lower.size()), 1);
}

absl::StatusOr<double> VarianceOf(double stddev) {
  const double variance = std::nextafter(stddev * stddev, std::numeric_limits<double>::infinity());
  if (std::isnormal(variance)) return variance;
  return absl::InvalidArgumentError(
      absl::StrCat("the noise's variance must be a normal number, but the standard deviation ",
                   FormatExact(stddev), " makes it ", variance));
}

absl::StatusOr<Calibration> Calibrate(const MechanismParameters& parameters, int64_t values) {
  const MechanismTraits& traits = TraitsOf(parameters.kind);
  PM_RETURN_IF_ERROR(CheckParametersGiven(traits, parameters));
  if (traits.law == Law::kBoundedGaussian) {
    PM_ASSIGN_OR_RETURN(const Box box, ExpandBox(parameters, values));
    PM_ASSIGN_OR_RETURN(const std::vector<double> widths, BoxWidths(box.lower, box.upper));
    PM_ASSIGN_OR_RETURN(
        const double stddev,
        (traits.published
             ? PublishedBoundedGaussianStddev(widths, *parameters.sensitivity, parameters.epsilon)
             : BoundedGaussianStddev(widths, *parameters.sensitivity, parameters.epsilon)));
    return Calibration{stddev, BoundedGuarantee(parameters, box)};
  }
  PM_ASSIGN_OR_RETURN(AdditiveNoise noise, CalibrateAdditive(parameters, values));
  return Calibration{traits.law == Law::kLaplace ? M_SQRT2 * noise.width : noise.width,
                     std::move(noise.guarantee)};
}

absl::StatusOr<std::unique_ptr<const Mechanism>> MakeMechanism(
    const MechanismParameters& parameters, const ReleaseShape& shape) {
  PM_RETURN_IF_ERROR(CheckReleaseShape(shape));
  const MechanismTraits& traits = TraitsOf(parameters.kind);
  PM_RETURN_IF_ERROR(CheckParametersGiven(traits, parameters));
  if (traits.law == Law::kBoundedGaussian) {
    PM_ASSIGN_OR_RETURN(const Box box, ExpandBox(parameters, shape.values));
    Guarantee guarantee = BoundedGuarantee(parameters, box);
    if (!traits.published) {
      guarantee.source = "bounded Gaussian on a grid, exact loss (PRIVACY.md section 6)";
    }
    return MakeBoundedGaussianMechanism(box, *parameters.sensitivity, parameters.epsilon,
                                        traits.published, std::move(guarantee));
  }
  PM_ASSIGN_OR_RETURN(AdditiveNoise noise, CalibrateAdditive(parameters, shape.values));
  return MakeAdditiveMechanism(traits.law, noise.width / noise.sensitivity * kRoundedUp,
                               noise.sensitivity, shape, std::move(noise.guarantee));
}

}  // namespace privatemail::client
