#include "client/release/joint_steps.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/privacy/exact_sampling.h"
#include "common/base/status_macros.h"
#include "common/numerics/affinity_operator.h"
#include "common/numerics/smlq.h"

namespace privatemail {
namespace {

constexpr int kChangedRows = 2;  // the target may be replaced by one of another class

// What replacing the target can change, including the rounding of the two computations.
absl::StatusOr<double> Sensitivity(const JointSetting& setting, const IterationInputs& inputs,
                                   Mechanism mechanism) {
  if (mechanism == Mechanism::kPublishedGaussian) {
    const EmbeddingSettings& settings = setting.parameters.settings;
    if (settings.kernel != KernelConvention::kTwoSigmaSquared) {
      return absl::FailedPreconditionError(
          "published-gaussian is printed for the kernel two_sigma_squared only, but the collection "
          "has another");
    }
    PM_ASSIGN_OR_RETURN(
        const PublishedGaussianBound bound,
        PublishedGaussianSensitivity(inputs.start.rows(), inputs.alpha, settings.kernel_bandwidth,
                                     setting.slots() - 1, inputs.start.norm()));
    return bound.sensitivity_as_printed;
  }
  PM_ASSIGN_OR_RETURN(const double bound, ReplaceTargetSensitivity(inputs, kChangedRows));
  PM_ASSIGN_OR_RETURN(const double rounding,
                      IterationRoundingError(inputs, setting.parameters.feature_dim));
  return bound + 2 * rounding;
}

Guarantee GuaranteeOf(const PrivacyCost& cost) {
  const bool proven = cost.mechanism == Mechanism::kGaussian;
  return {.epsilon = cost.epsilon,
          .delta = cost.delta,
          .neighbours = proven ? "the target, feature and class, replaced by any other target"
                               : "as published: a row added",
          .proven = proven,
          .source =
              proven ? "PRIVACY.md section 4 (sensitivity); Balle and Wang 2018, theorem 8 (noise)"
                     : "PrivateMail (second version), appendix B and definition 3: as published, "
                       "not a proven guarantee"};
}

absl::StatusOr<std::vector<int64_t>> DrawDummies(const JointSetting& setting, BitSource& bits) {
  std::vector<uint64_t> choices;
  for (const std::vector<int64_t>& candidates : setting.of_slot)
    choices.push_back(candidates.size());
  PM_ASSIGN_OR_RETURN(const std::vector<uint64_t> chosen, SampleUniform(choices, bits));
  std::vector<int64_t> dummies;
  for (size_t slot = 0; slot < chosen.size(); ++slot) {
    dummies.push_back(setting.of_slot[slot][chosen[slot]]);
  }
  return dummies;
}

}  // namespace

absl::StatusOr<TargetFreePart> DrawTargetFreePart(const JointSetting& setting,
                                                  const PrivacyCost& cost, BitSource& bits) {
  const EmbeddingSettings& settings = setting.parameters.settings;
  PM_ASSIGN_OR_RETURN(const double stddev_per_unit,
                      GaussianStddevPerUnit(cost.mechanism, cost.epsilon, cost.delta));
  PM_ASSIGN_OR_RETURN(Matrix start,
                      NormalStart(setting.slots() + setting.anchors.rows(), settings.embedding_dim,
                                  settings.start_stddev, bits));
  PM_ASSIGN_OR_RETURN(std::vector<int64_t> dummies, DrawDummies(setting, bits));
  const IterationInputs inputs{.start = start,
                               .label_graph = setting.label_graph,
                               .alpha = settings.alpha,
                               .kernel_denominator = settings.KernelDenominator(),
                               .slots = setting.slots()};
  PM_ASSIGN_OR_RETURN(const double sensitivity, Sensitivity(setting, inputs, cost.mechanism));
  PM_ASSIGN_OR_RETURN(const double largest_value, LargestIterateValue(inputs));
  PM_ASSIGN_OR_RETURN(
      const GaussianMechanism mechanism,
      GaussianMechanism::Create(stddev_per_unit, sensitivity, start.size(), largest_value));
  return TargetFreePart{std::move(start), std::move(dummies), sensitivity, GuaranteeOf(cost),
                        mechanism};
}

Matrix AssembleRows(const JointSetting& setting, const TargetFreePart& part, int64_t slot,
                    const RowVector& target) {
  Matrix rows(setting.slots() + setting.anchors.rows(), setting.anchors.cols());
  for (int64_t c = 0; c < setting.slots(); ++c) {
    rows.row(c) = setting.pool.row(part.dummies[static_cast<size_t>(c)]);
  }
  rows.row(slot) = target;
  rows.bottomRows(setting.anchors.rows()) = setting.anchors;
  return rows;
}

Matrix PrivateIteration(const JointSetting& setting, const TargetFreePart& part,
                        const Matrix& rows) {
  const EmbeddingSettings& settings = setting.parameters.settings;
  return SmlqUpdate(part.start, AffinityOperator(rows, settings.KernelDenominator()),
                    setting.label_graph, settings.alpha);
}

}  // namespace privatemail
