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
#include "client/privacy/sensitivity/rounding.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

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
  const bool other_norm = p.norm != NeighbourBall().p;
  PM_RETURN_IF_ERROR(CheckGiven(traits, "norm", !of_value && other_norm, other_norm));
  PM_RETURN_IF_ERROR(CheckGiven(traits, "Lipschitz constant", traits.protects == Protects::kOutput,
                                p.lipschitz.has_value()));
  return CheckGiven(traits, "box (lower and upper ends)", traits.law == Law::kBoundedGaussian,
                    !p.box.lower.empty() || !p.box.upper.empty());
}

NeighbourBall BallOf(const MechanismParameters& p) { return {.radius = *p.radius, .p = p.norm}; }

Guarantee ValueGuarantee(const MechanismParameters& p, const char* norm, const char* source) {
  const MechanismTraits& traits = TraitsOf(p.kind);
  return {.epsilon = p.epsilon,
          .delta = traits.TakesDelta() ? *p.delta : 0,
          .neighbours = NeighboursOfValue(*p.sensitivity, norm),
          .proven = !traits.published,
          .source = source};
}

absl::StatusOr<CalibratedGaussian> CalibrateValueGaussian(const MechanismParameters& p) {
  if (TraitsOf(p.kind).published) {
    PM_ASSIGN_OR_RETURN(const double per_unit, PublishedGaussianStddev(p.epsilon, *p.delta));
    PM_ASSIGN_OR_RETURN(const double stddev, ScaledStddev(per_unit, *p.sensitivity));
    return CalibratedGaussian{
        stddev, ValueGuarantee(p, "L2",
                               "PrivateMail (second version), definition 3: as published, "
                               "not a proven guarantee")};
  }
  PM_ASSIGN_OR_RETURN(const double per_unit, AnalyticGaussianStddev(p.epsilon, *p.delta));
  PM_ASSIGN_OR_RETURN(const double stddev, ScaledStddev(per_unit, *p.sensitivity));
  CalibratedGaussian noise{stddev, ValueGuarantee(p, "L2", "Balle and Wang 2018, theorem 8")};
  noise.guarantee.gaussian_mu = kRoundedUp / per_unit;
  return noise;
}

absl::StatusOr<CalibratedGaussian> CalibrateGaussian(const MechanismParameters& p, int64_t values) {
  const MechanismTraits& traits = TraitsOf(p.kind);
  switch (traits.protects) {
    case Protects::kValue:
      return CalibrateValueGaussian(p);
    case Protects::kOutput:
      return traits.published
                 ? CalibratePublishedGaussOutput(p.epsilon, *p.delta, BallOf(p), *p.lipschitz)
                 : CalibrateGaussOutput(p.epsilon, *p.delta, BallOf(p), *p.lipschitz);
    case Protects::kInput:
      return traits.published ? CalibratePublishedGaussInput(p.epsilon, *p.delta, BallOf(p), values)
                              : CalibrateGaussInput(p.epsilon, *p.delta, BallOf(p), values);
  }
  return absl::InternalError("unknown Protects");
}

absl::StatusOr<CalibratedLaplace> CalibrateLaplace(const MechanismParameters& p) {
  if (TraitsOf(p.kind).protects == Protects::kOutput) {
    return CalibrateLapOutput(p.epsilon, BallOf(p), *p.lipschitz);
  }
  PM_ASSIGN_OR_RETURN(const double scale, LaplaceScale(p.epsilon, *p.sensitivity));
  return CalibratedLaplace{
      scale,
      TraitsOf(p.kind).published
          ? ValueGuarantee(p, "L2, as printed",
                           "Differentially Private Supervised Manifold Learning, corollary 1.1: as "
                           "published, not a proven guarantee")
          : ValueGuarantee(p, "L1", "Dwork, McSherry, Nissim, Smith 2006, proposition 1")};
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

absl::StatusOr<CalibratedGaussian> CalibrateBounded(const MechanismParameters& p, int64_t values) {
  PM_ASSIGN_OR_RETURN(const Box box, ExpandBox(p, values));
  PM_ASSIGN_OR_RETURN(const std::vector<double> widths, BoxWidths(box.lower, box.upper));
  PM_ASSIGN_OR_RETURN(CalibratedGaussian noise,
                      TraitsOf(p.kind).published
                          ? CalibratePublishedBoundedGaussian(widths, *p.sensitivity, p.epsilon)
                          : CalibrateBoundedGaussian(widths, *p.sensitivity, p.epsilon));
  noise.guarantee.neighbours = NeighboursInBox(box.lower, box.upper, *p.sensitivity);
  return noise;
}

// Largest distance between the values of neighbours.
absl::StatusOr<double> ReleaseSensitivity(const MechanismParameters& p, int64_t values) {
  switch (TraitsOf(p.kind).protects) {
    case Protects::kValue:
      return *p.sensitivity;
    case Protects::kOutput:
      return *p.radius * *p.lipschitz;
    case Protects::kInput: {
      PM_ASSIGN_OR_RETURN(const double lipschitz, IdentityLipschitz(values, p.norm));
      return *p.radius * lipschitz;
    }
  }
  return absl::InternalError("unknown Protects");
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
  if (traits.law == Law::kLaplace) {
    PM_ASSIGN_OR_RETURN(CalibratedLaplace noise, CalibrateLaplace(parameters));
    return Calibration{M_SQRT2 * noise.scale, std::move(noise.guarantee)};
  }
  PM_ASSIGN_OR_RETURN(CalibratedGaussian noise, traits.law == Law::kGaussian
                                                    ? CalibrateGaussian(parameters, values)
                                                    : CalibrateBounded(parameters, values));
  return Calibration{noise.stddev, std::move(noise.guarantee)};
}

absl::StatusOr<std::unique_ptr<const Mechanism>> MakeMechanism(
    const MechanismParameters& parameters, const ReleaseShape& shape) {
  PM_RETURN_IF_ERROR(CheckReleaseShape(shape));
  const MechanismTraits& traits = TraitsOf(parameters.kind);
  PM_RETURN_IF_ERROR(CheckParametersGiven(traits, parameters));
  if (traits.law == Law::kBoundedGaussian) {
    PM_ASSIGN_OR_RETURN(const Box box, ExpandBox(parameters, shape.values));
    return traits.published
               ? MakePublishedBoundedGaussianMechanism(box, *parameters.sensitivity,
                                                       parameters.epsilon)
               : MakeBoundedGaussianMechanism(box, *parameters.sensitivity, parameters.epsilon);
  }
  PM_ASSIGN_OR_RETURN(const double sensitivity, ReleaseSensitivity(parameters, shape.values));
  if (traits.law == Law::kLaplace) {
    PM_ASSIGN_OR_RETURN(CalibratedLaplace noise, CalibrateLaplace(parameters));
    return MakeLaplaceMechanism(noise.scale / sensitivity * kRoundedUp, sensitivity, shape,
                                std::move(noise.guarantee));
  }
  PM_ASSIGN_OR_RETURN(CalibratedGaussian noise, CalibrateGaussian(parameters, shape.values));
  return MakeGaussianMechanism(noise.stddev / sensitivity * kRoundedUp, sensitivity, shape,
                               std::move(noise.guarantee));
}

}  // namespace privatemail::client
