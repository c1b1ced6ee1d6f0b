#include "client/schemes/joint/joint_steps.h"

#include <utility>

#include "client/privacy/mechanisms/additive_mechanism.h"
#include "client/privacy/sampling/exact_sampling.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"
#include "common/embedding/embed_rows.h"
#include "common/embedding/smlq.h"

namespace privatemail::client {
namespace {

// Adds noise to a unit row and scales the result to length 1.
absl::StatusOr<RowVector> NoisyTarget(const RowVector& target, const Mechanism& mechanism,
                                      BitSource& bits) {
  PM_ASSIGN_OR_RETURN(const FloatMatrix noisy, mechanism.Release(target, bits));
  PM_ASSIGN_OR_RETURN(const Matrix unit, UnitRows("noisy target", noisy));
  return RowVector(unit.row(0));
}

// One row of the pool per slot.
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

absl::StatusOr<Matrix> DrawStart(const JointSetting& setting, BitSource& bits) {
  const EmbeddingSettings& settings = setting.parameters.settings;
  switch (settings.start) {
    case StartKind::kClasses:
      return PublicStart(setting.parameters, setting.label_graph);
    case StartKind::kRandom:
      return NormalStart(setting.rows(), settings.embedding_dim, settings.start_stddev, bits);
  }
  __builtin_unreachable();
}

absl::StatusOr<TargetIndependentPart> DrawStartAndDummies(const JointSetting& setting,
                                                          BitSource& bits) {
  PM_ASSIGN_OR_RETURN(Matrix start, DrawStart(setting, bits));
  PM_ASSIGN_OR_RETURN(std::vector<int64_t> dummies, DrawDummies(setting, bits));
  return TargetIndependentPart{std::move(start), std::move(dummies), {}, {}};
}

absl::StatusOr<TargetIndependentPart> DrawTargetIndependentPart(const JointSetting& setting,
                                                                const PrivacyCost& cost,
                                                                BitSource& bits) {
  PM_ASSIGN_OR_RETURN(TargetIndependentPart part, DrawStartAndDummies(setting, bits));
  PM_ASSIGN_OR_RETURN(part.noise, MakeIterationNoise(setting, part.start, cost));
  part.guarantee = ComposeGuarantee(cost, part.noise);
  return part;
}

absl::StatusOr<IterationNoise> MakeIterationNoise(const JointSetting& setting, const Matrix& start,
                                                  const PrivacyCost& cost) {
  const EmbeddingSettings& settings = setting.parameters.settings;
  return MakeIterationNoise(settings, setting.feature_dim(), setting.anchors->points(),
                            {.start = start,
                             .label_graph = setting.label_graph,
                             .alpha = settings.alpha,
                             .kernel_denominator = settings.KernelDenominator(),
                             .slots = setting.slots()},
                            cost);
}

absl::StatusOr<std::vector<FloatMatrix>> ReleaseIterations(const JointSetting& setting,
                                                           const TargetIndependentPart& part,
                                                           const PrivacyCost& cost, int64_t slot,
                                                           const RowVector& target,
                                                           BitSource& bits) {
  std::vector<FloatMatrix> released;
  if (TraitsOf(cost.mechanism).protects == MechanismTraits::Protects::kInput) {
    PM_ASSIGN_OR_RETURN(const RowVector noisy, NoisyTarget(target, *part.noise.mechanism, bits));
    const BorderedAffinity graph = FeatureGraph(setting, SlotRows(setting, part, slot, noisy));
    released.emplace_back(PrivateIteration(setting, part.start, graph).cast<float>());
    return released;
  }
  const BorderedAffinity graph = FeatureGraph(setting, SlotRows(setting, part, slot, target));
  PM_ASSIGN_OR_RETURN(
      released.emplace_back(),
      part.noise.mechanism->Release(PrivateIteration(setting, part.start, graph), bits));
  while (static_cast<int64_t>(released.size()) < cost.private_iterations) {
    const Matrix start = released.back().cast<double>();
    PM_ASSIGN_OR_RETURN(const IterationNoise noise, MakeIterationNoise(setting, start, cost));
    PM_ASSIGN_OR_RETURN(released.emplace_back(),
                        noise.mechanism->Release(PrivateIteration(setting, start, graph), bits));
  }
  return released;
}

Border SlotRows(const JointSetting& setting, const TargetIndependentPart& part, int64_t slot,
                const RowVector& target) {
  const bool of_pool = setting.pool.has_value();
  Border rows;
  rows.own.resize(of_pool ? setting.slots() : 1, target.size());
  for (int64_t c = 0; c < setting.slots(); ++c) {
    const int64_t dummy = part.dummies[static_cast<size_t>(c)];
    // Classes do not share dummies, so no anchor is copied twice.
    rows.copy_of.push_back(of_pool || c == slot ? Border::kOwn : dummy);
    if (of_pool) rows.own.row(c) = setting.pool->row(dummy);
  }
  rows.own.row(of_pool ? slot : 0) = target;
  return rows;
}

BorderedAffinity FeatureGraph(const JointSetting& setting, const Border& slot_rows) {
  return {slot_rows, setting.anchors};
}

namespace {

absl::StatusOr<Matrix> Rehearse(const JointSetting& setting) {
  const ComputingDeadline deadline("a release", setting.limits);
  const EmbeddingSettings& settings = setting.parameters.settings;
  TargetIndependentPart part;
  part.start = PublicStart(setting.parameters, setting.label_graph);
  for (const std::vector<int64_t>& rows : setting.of_slot) part.dummies.push_back(rows.front());
  const Matrix& pool = setting.pool.has_value() ? *setting.pool : setting.anchors->points();
  const RowVector dummy = pool.row(part.dummies.front());
  const BorderedAffinity graph = FeatureGraph(setting, SlotRows(setting, part, /*slot=*/0, dummy));
  PM_ASSIGN_OR_RETURN(const Matrix iterate, SmlqUpdate(part.start, graph, setting.label_graph,
                                                       settings.alpha, deadline.products()));
  return PostProcess(iterate.cast<float>().cast<double>(), setting.label_graph, settings,
                     deadline.steps());
}

}  // namespace

absl::StatusOr<const Matrix*> RehearsalOf(const JointSetting& setting) {
  const std::lock_guard<std::mutex> lock(setting.rehearsal->mutex);
  std::optional<Matrix>& made = setting.rehearsal->made;
  if (!made.has_value()) {
    PM_ASSIGN_OR_RETURN(made, Rehearse(setting));
  }
  return &*made;
}

Matrix PrivateIteration(const JointSetting& setting, const Matrix& start,
                        const AffinityOperator& feature_graph) {
  // Rows in memory can always be read.
  return SmlqUpdate(start, feature_graph, setting.label_graph, setting.parameters.settings.alpha)
      .value();
}

}  // namespace privatemail::client
