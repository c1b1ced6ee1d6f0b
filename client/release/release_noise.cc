#include "client/release/release_noise.h"

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/known_anchors_sensitivity.h"
#include "client/privacy/lipschitz.h"
#include "client/privacy/make_mechanism.h"
#include "client/privacy/published_laplace_calibration.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail {
namespace {

using Law = MechanismTraits::Law;
using Protects = MechanismTraits::Protects;

constexpr int kChangedRows = 2;  // the target may be replaced by one of another class

// What is added to a sensitivity because neighbours are computed with rounding, each on its own.
absl::StatusOr<double> RoundingOf(const PublicParameters& parameters, const IterationInputs& inputs,
                                  Law law) {
  PM_ASSIGN_OR_RETURN(const double l2, IterationRoundingError(inputs, parameters.feature_dim));
  const double to_l1 = std::sqrt(static_cast<double>(inputs.start.size()));
  return 2 * l2 * (law == Law::kLaplace ? to_l1 : 1);
}

absl::StatusOr<double> ProvenSensitivity(const PublicParameters& parameters, const Matrix& anchors,
                                         const IterationInputs& inputs, Law law) {
  PM_ASSIGN_OR_RETURN(const double bound,
                      law == Law::kLaplace
                          ? KnownAnchorsL1Sensitivity(inputs, anchors, kChangedRows)
                          : KnownAnchorsSensitivity(inputs, anchors, kChangedRows));
  PM_ASSIGN_OR_RETURN(const double rounding, RoundingOf(parameters, inputs, law));
  return bound + rounding;
}

// The papers print their bounds for one convention of the kernel.
absl::Status CheckPrintedKernel(const PublicParameters& parameters, const MechanismTraits& traits) {
  if (parameters.settings.kernel == KernelConvention::kTwoSigmaSquared) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      traits.name,
      " is printed for the kernel two_sigma_squared only, but the collection has another"));
}

absl::StatusOr<double> SecondPapersSensitivity(const PublicParameters& parameters,
                                               const IterationInputs& inputs) {
  PM_ASSIGN_OR_RETURN(const PublishedGaussianBound bound,
                      PublishedGaussianSensitivity(inputs.start.rows(), inputs.alpha,
                                                   parameters.settings.kernel_bandwidth,
                                                   inputs.slots - 1, inputs.start.norm()));
  return bound.sensitivity_as_printed;
}

absl::StatusOr<double> FirstPapersSensitivity(const PublicParameters& parameters,
                                              const IterationInputs& inputs) {
  const EmbeddingSettings& settings = parameters.settings;
  const auto n = static_cast<int64_t>(inputs.start.rows());
  PM_ASSIGN_OR_RETURN(
      const PublishedLaplaceConstants constants,
      settings.label_graph == LabelGraphKind::kOneHotKernel
          ? PublishedLaplaceOneHot(n, inputs.alpha, settings.kernel_bandwidth)
          : PublishedLaplaceInteger(n, inputs.alpha, settings.kernel_bandwidth, inputs.slots - 1));
  PM_ASSIGN_OR_RETURN(const double ln_beta, PublishedLaplaceLnBeta(n, inputs.start.cols()));
  return PublishedLaplaceSensitivity(constants, n, inputs.start.cols(), ln_beta,
                                     settings.start_stddev);
}

absl::StatusOr<double> SensitivityOf(const PublicParameters& parameters, const Matrix& anchors,
                                     const IterationInputs& inputs, const MechanismTraits& traits) {
  // The bounded Gaussian's printed part is its calibration; the papers' bounds are of other laws.
  if (!traits.published || traits.law == Law::kBoundedGaussian) {
    return ProvenSensitivity(parameters, anchors, inputs, traits.law);
  }
  PM_RETURN_IF_ERROR(CheckPrintedKernel(parameters, traits));
  return traits.law == Law::kLaplace ? FirstPapersSensitivity(parameters, inputs)
                                     : SecondPapersSensitivity(parameters, inputs);
}

// The release's constant, with the rounding's share for a ball of this radius.
absl::StatusOr<double> LipschitzOf(const PublicParameters& parameters,
                                   const IterationInputs& inputs, Law law, double radius) {
  PM_RETURN_IF_ERROR(CheckFinitePositive("radius", radius));
  PM_ASSIGN_OR_RETURN(const ReleaseLipschitz constant, LipschitzOfRelease(inputs));
  PM_ASSIGN_OR_RETURN(const double rounding, RoundingOf(parameters, inputs, law));
  return (law == Law::kLaplace ? constant.to_l1 : constant.to_l2) + rounding / radius;
}

absl::Status CheckNoRadius(const PrivacyCost& cost) {
  if (std::isnan(cost.radius)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("radius is of no use to ", TraitsOf(cost.mechanism).name, ": expected none"));
}

absl::Status CheckIterations(const PrivacyCost& cost, const MechanismTraits& traits) {
  const bool on_input = traits.protects == Protects::kInput;
  return CheckIntegerBetween("private_iterations", cost.private_iterations, 1, on_input ? 1 : 100);
}

// Of a pure law.
absl::StatusOr<double> EpsilonOfEachIteration(const PrivacyCost& cost) {
  if (cost.private_iterations == 1) return cost.epsilon;
  if (std::isnan(cost.delta) || cost.delta == 0) {
    return cost.epsilon / static_cast<double>(cost.private_iterations) * (1 - 1e-15);
  }
  return EpsilonOfEachRelease(cost.epsilon, cost.delta, cost.private_iterations);
}

}  // namespace

absl::StatusOr<IterationNoise> NoiseOf(const PublicParameters& parameters, const Matrix& anchors,
                                       const IterationInputs& inputs, const PrivacyCost& cost) {
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  PM_RETURN_IF_ERROR(CheckIterations(cost, traits));
  PM_ASSIGN_OR_RETURN(const double largest_value, LargestIterateValue(inputs));
  ReleaseShape shape{.values = inputs.start.size(), .largest_value = largest_value};
  MechanismParameters noise{.kind = cost.mechanism, .epsilon = cost.epsilon, .delta = cost.delta};
  double widening = 1;
  if (traits.TakesDelta()) {
    widening = std::sqrt(static_cast<double>(cost.private_iterations));
  } else {
    PM_ASSIGN_OR_RETURN(noise.epsilon, EpsilonOfEachIteration(cost));
    if (cost.private_iterations > 1) noise.delta = MechanismParameters::kUnset;
  }
  IterationNoise result;
  if (traits.protects == Protects::kValue) {
    PM_RETURN_IF_ERROR(CheckNoRadius(cost));
    PM_ASSIGN_OR_RETURN(result.sensitivity, SensitivityOf(parameters, anchors, inputs, traits));
    noise.sensitivity = widening * result.sensitivity;
    if (traits.law == Law::kBoundedGaussian) noise.box = {{-largest_value}, {largest_value}};
  } else {
    noise.ball = {.radius = cost.radius, .p = 2};
    result.sensitivity = cost.radius;
    if (traits.protects == Protects::kInput) {
      shape = {.values = parameters.feature_dim, .largest_value = 1};
    } else {
      PM_ASSIGN_OR_RETURN(const double lipschitz,
                          LipschitzOf(parameters, inputs, traits.law, cost.radius));
      result.sensitivity *= lipschitz;
      noise.lipschitz = widening * lipschitz;
    }
  }
  PM_ASSIGN_OR_RETURN(result.mechanism, MakeMechanism(noise, shape));
  return result;
}

Guarantee GuaranteeOf(const PrivacyCost& cost, const Mechanism& mechanism) {
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  Guarantee guarantee = mechanism.guarantee();
  guarantee.epsilon = cost.epsilon;
  guarantee.delta = traits.TakesDelta() || cost.private_iterations > 1 ? cost.delta : 0;
  if (std::isnan(guarantee.delta)) guarantee.delta = 0;
  if (traits.protects != Protects::kValue) {
    guarantee.neighbours =
        "the target's features replaced by any others at most the radius away; the class is not "
        "hidden";
    return guarantee;
  }
  if (traits.published && traits.law != Law::kBoundedGaussian) {
    guarantee.neighbours = "as published: a row added";
    return guarantee;
  }
  guarantee.neighbours = "the target, feature and class, replaced by any other target";
  guarantee.source =
      absl::StrCat("PRIVACY.md section 4, known_anchors_sensitivity.h (sensitivity); ",
                   guarantee.source, " (noise)");
  return guarantee;
}

}  // namespace privatemail
