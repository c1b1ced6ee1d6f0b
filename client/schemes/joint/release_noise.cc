#include "client/schemes/joint/release_noise.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/composition.h"
#include "client/privacy/accounting/guarantee_fields.h"
#include "client/privacy/mechanisms/make_mechanism.h"
#include "client/privacy/sensitivity/known_anchors_sensitivity.h"
#include "client/privacy/sensitivity/lipschitz.h"
#include "client/privacy/sensitivity/published_sensitivity.h"
#include "client/privacy/sensitivity/sensitivity.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/numerics/rounding.h"

namespace privatemail::client {
namespace {

using Law = MechanismTraits::Law;
using Protects = MechanismTraits::Protects;

constexpr int kChangedRows = 2;  // the target may be replaced by one of another class

// The rounding errors of both neighbours, added to a sensitivity.
absl::StatusOr<double> RoundingAllowance(int64_t feature_dim, const IterationInputs& inputs,
                                         Law law) {
  PM_ASSIGN_OR_RETURN(const double l2, IterationRoundingError(inputs, feature_dim));
  const double to_l1 = std::sqrt(static_cast<double>(inputs.start.size()));
  return 2 * l2 * (law == Law::kLaplace ? to_l1 : 1);
}

absl::StatusOr<double> ProvenSensitivity(int64_t feature_dim, const Matrix& anchors,
                                         const IterationInputs& inputs, Law law) {
  PM_ASSIGN_OR_RETURN(const double bound,
                      KnownAnchorsSensitivity(inputs, anchors, kChangedRows,
                                              law == Law::kLaplace ? Norm::kL1 : Norm::kL2));
  PM_ASSIGN_OR_RETURN(const double rounding, RoundingAllowance(feature_dim, inputs, law));
  return bound + rounding;
}

// The bounded Gaussian's printed part is its calibration; the papers' bounds are of other laws.
bool SensitivityIsPrinted(const MechanismTraits& traits) {
  return traits.protects == Protects::kValue && traits.published &&
         traits.law != Law::kBoundedGaussian;
}

absl::StatusOr<double> SensitivityOf(const EmbeddingSettings& settings, int64_t feature_dim,
                                     const Matrix& anchors, const IterationInputs& inputs,
                                     const MechanismTraits& traits) {
  if (!SensitivityIsPrinted(traits)) {
    return ProvenSensitivity(feature_dim, anchors, inputs, traits.law);
  }
  return traits.law == Law::kLaplace ? PublishedLaplaceSensitivity(settings, inputs)
                                     : PublishedGaussianSensitivity(settings, inputs);
}

// The release's Lipschitz constant, with the rounding allowance spread over the radius.
absl::StatusOr<double> LipschitzOf(int64_t feature_dim, const IterationInputs& inputs, Law law,
                                   double radius) {
  PM_ASSIGN_OR_RETURN(const ReleaseLipschitz constant, LipschitzOfRelease(inputs));
  PM_ASSIGN_OR_RETURN(const double rounding, RoundingAllowance(feature_dim, inputs, law));
  return (law == Law::kLaplace ? constant.to_l1 : constant.to_l2) + rounding / radius;
}

// One iteration's share of the cost.
struct NoiseShare {
  double epsilon = 0;
  std::optional<double> delta = {};
  double delta_of_all = 0;    // 0 where the theorem needs none
  double widening = 1;        // factor of the noise
  absl::string_view theorem;  // of the composition
};

absl::StatusOr<NoiseShare> ShareNoise(const PrivacyCost& cost, const MechanismTraits& traits) {
  const bool on_input = traits.protects == Protects::kInput;
  PM_RETURN_IF_ERROR(
      CheckIntegerBetween("private_iterations", cost.private_iterations, 1, on_input ? 1 : 100));
  const bool single = cost.private_iterations == 1;
  if (single || traits.TakesDelta()) {
    return NoiseShare{.epsilon = cost.epsilon,
                      .delta = cost.delta,
                      .delta_of_all = traits.TakesDelta() ? cost.delta.value_or(0) : 0,
                      .widening = std::sqrt(static_cast<double>(cost.private_iterations)),
                      .theorem = single ? "" : kGaussianComposition};
  }
  PM_ASSIGN_OR_RETURN(
      const EpsilonShare each,
      EpsilonPerRelease(cost.epsilon, cost.delta.value_or(0), cost.private_iterations));
  return NoiseShare{.epsilon = each.epsilon, .delta_of_all = each.delta, .theorem = each.theorem};
}

// The neighbour relation of a mechanism, with the exact radius. A ledger adds up only guarantees
// over equal neighbours.
std::string Neighbours(const MechanismTraits& traits, double radius) {
  if (SensitivityIsPrinted(traits)) return "as published: a row added";
  if (traits.protects == Protects::kValue) return kAnyTargetNeighbours;
  // Chaining over the unit sphere (PRIVACY.md section 6), rounded up.
  const double steps = std::ceil(std::asin(1.) / std::asin(radius / 2) * (1 + 1e-12));
  const std::string chained =
      radius < 2 ? absl::StrCat(" (any others within ", steps, " such steps: ", steps,
                                " times epsilon, more than ", steps, " times any delta)")
                 : "";
  return absl::StrCat("the target's features, scaled to length 1, replaced by any others at most ",
                      FormatExact(radius), " away", chained, "; the class is not hidden");
}

// INVALID_ARGUMENT: missing, not used by the mechanism, or outside (0, 2], the
// distances between unit features.
absl::Status CheckRadius(const std::optional<double>& radius, const MechanismTraits& traits) {
  PM_RETURN_IF_ERROR(CheckRadiusGiven(traits, radius.has_value()));
  if (traits.protects == Protects::kValue) return absl::OkStatus();
  PM_RETURN_IF_ERROR(CheckFinitePositive("radius", *radius));
  if (*radius <= 2) return absl::OkStatus();
  return InvalidField(
      "radius", absl::StrCat("must be at most 2, the diameter of the unit sphere that features lie "
                             "on, but is ",
                             *radius));
}

// Citation of the proof of sensitivity or Lipschitz constant; empty if none is needed or known.
absl::string_view SensitivityProof(const MechanismTraits& traits) {
  if (SensitivityIsPrinted(traits)) return "";
  switch (traits.protects) {
    case Protects::kValue:
      return "PRIVACY.md section 4, known_anchors_sensitivity.h (sensitivity); ";
    case Protects::kOutput:
      return "PRIVACY.md section 6, lipschitz.h (Lipschitz constant); ";
    case Protects::kInput:
      return "";
  }
  return "";
}

}  // namespace

absl::Status CheckCost(const PrivacyCost& cost) {
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  PM_RETURN_IF_ERROR(CheckRadius(cost.radius, traits));
  PM_ASSIGN_OR_RETURN(const NoiseShare share, ShareNoise(cost, traits));
  // 1 stands for the sensitivity or Lipschitz constant, which depends on more than the cost.
  MechanismParameters noise{.kind = cost.mechanism,
                            .epsilon = share.epsilon,
                            .delta = share.delta,
                            .radius = cost.radius};
  if (traits.protects == Protects::kValue) noise.sensitivity = 1;
  if (traits.protects == Protects::kOutput) noise.lipschitz = 1;
  if (traits.law == Law::kBoundedGaussian) noise.box = {{-1}, {1}};
  return Calibrate(noise, /*values=*/1).status();
}

absl::StatusOr<IterationNoise> MakeIterationNoise(const EmbeddingSettings& settings,
                                                  int64_t feature_dim, const Matrix& anchors,
                                                  const IterationInputs& inputs,
                                                  const PrivacyCost& cost) {
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  PM_RETURN_IF_ERROR(CheckRadius(cost.radius, traits));
  PM_ASSIGN_OR_RETURN(const NoiseShare share, ShareNoise(cost, traits));
  PM_ASSIGN_OR_RETURN(const double largest_value, LargestIterateValue(inputs));
  ReleaseShape shape{.values = inputs.start.size(), .largest_value = largest_value};
  MechanismParameters noise{.kind = cost.mechanism, .epsilon = share.epsilon, .delta = share.delta};
  IterationNoise result;
  result.delta = share.delta_of_all;
  result.composition = share.theorem;
  switch (traits.protects) {
    case Protects::kValue: {
      PM_ASSIGN_OR_RETURN(result.sensitivity,
                          SensitivityOf(settings, feature_dim, anchors, inputs, traits));
      noise.sensitivity = share.widening * result.sensitivity;
      if (traits.law == Law::kBoundedGaussian) noise.box = {{-largest_value}, {largest_value}};
      break;
    }
    case Protects::kOutput: {
      PM_ASSIGN_OR_RETURN(const double lipschitz,
                          LipschitzOf(feature_dim, inputs, traits.law, *cost.radius));
      result.sensitivity = *cost.radius * lipschitz;
      noise.radius = *cost.radius;
      noise.lipschitz = share.widening * lipschitz;
      break;
    }
    case Protects::kInput:
      result.sensitivity = *cost.radius;
      // Scaling to length 1 rounds each of two neighbours' rows.
      noise.radius = *cost.radius + 2 * (static_cast<double>(feature_dim) + 4) * kUnitRoundoff;
      shape = {.values = feature_dim, .largest_value = 1};
      break;
  }
  PM_ASSIGN_OR_RETURN(result.mechanism, MakeMechanism(noise, shape));
  return result;
}

Guarantee ComposeGuarantee(const PrivacyCost& cost, const IterationNoise& noise) {
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  Guarantee guarantee = noise.mechanism->guarantee();
  guarantee.epsilon = cost.epsilon;
  guarantee.delta = noise.delta;
  guarantee.neighbours = Neighbours(traits, cost.radius.value_or(0));
  if (guarantee.radius.has_value()) guarantee.radius = *cost.radius;
  if (const absl::string_view proof = SensitivityProof(traits); !proof.empty()) {
    guarantee.source = absl::StrCat(proof, guarantee.source, " (noise)");
  }
  if (!noise.composition.empty()) {
    guarantee.source = absl::StrCat(noise.composition, " over ", cost.private_iterations,
                                    " iterations of: ", guarantee.source);
  }
  return guarantee;
}

}  // namespace privatemail::client
