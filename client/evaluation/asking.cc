#include "client/evaluation/asking.h"

#include <cmath>
#include <numbers>
#include <random>

#include "client/seeded_bits/seeded_bits.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

// The searcher's side of a target that has no slots to hide in.
JointSetting WithoutSlots(const Scene& scene, int64_t slot) {
  const JointSetting& with = scene.joint;
  const std::vector<int32_t>& anchor_labels = scene.trial->split.anchors.labels;
  PublicParameters parameters = with.parameters;
  parameters.slot_labels = {with.parameters.slot_labels[static_cast<size_t>(slot)]};
  std::vector<int32_t> labels = parameters.slot_labels;
  labels.insert(labels.end(), anchor_labels.begin(), anchor_labels.end());
  LabelGraph graph(labels, parameters.settings.label_graph,
                   parameters.settings.KernelDenominator());
  return {.parameters = std::move(parameters),
          .anchors = with.anchors,
          .pool = std::nullopt,
          .of_slot = {with.of_slot[static_cast<size_t>(slot)]},
          .label_graph = std::move(graph),
          .class_means = with.class_means.row(slot)};
}

int64_t WrongSlot(int64_t slot, int64_t slots, uint64_t seed) {
  std::mt19937_64 bits(seed);
  const auto others = static_cast<uint64_t>(slots - 1);
  return (slot + 1 + static_cast<int64_t>(bits() % others)) % slots;
}

// Nothing where the server would refuse the release.
absl::StatusOr<std::optional<SlotAnswer>> Search(const EmbeddedGallery& gallery,
                                                 const JointSetting& joint,
                                                 const FloatMatrix& release, bool post_process,
                                                 int64_t k, int64_t slot) {
  absl::StatusOr<SlotAnswer> answer = SearchSlot(gallery, release.cast<double>(), joint.label_graph,
                                                 joint.parameters.settings, post_process, slot, k);
  if (absl::IsFailedPrecondition(answer.status())) return std::nullopt;
  PM_RETURN_IF_ERROR(answer.status());
  return *std::move(answer);
}

absl::StatusOr<std::optional<SlotAnswer>> Ask(const JointSetting& joint,
                                              const EmbeddedGallery& gallery, const Asking& asking,
                                              int64_t k, int64_t slot, const RowVector& features,
                                              BitSource& bits) {
  PM_ASSIGN_OR_RETURN(const Released release, ReleaseOf(joint, asking.cost, slot, features, bits));
  return Search(gallery, joint, release.rows, /*post_process=*/true, k, slot);
}

absl::StatusOr<std::optional<SlotAnswer>> AskAnchored(const Scene& scene, const PrivacyCost& cost,
                                                      const PlacedTarget& target, BitSource& bits) {
  PM_RETURN_IF_ERROR(scene.anchored.status());
  const AnchoredSetting& setting = *scene.anchored;
  PM_ASSIGN_OR_RETURN(const ReleasedSlots released, ReleaseAnchored(setting, cost, target, bits));
  return Search(*scene.embedded, scene.joint,
                PosteriorMeanCoordinates(setting, released.noise, TraitsOf(cost.mechanism).law,
                                         released.rows),
                /*post_process=*/false, scene.trial->k, target.slot);
}

absl::StatusOr<std::optional<SlotAnswer>> AskOne(const Scene& scene, const Asking& asking,
                                                 size_t target) {
  const Trial& trial = *scene.trial;
  const auto row = static_cast<Eigen::Index>(target);
  const auto seed_of = [&](absl::string_view what) { return SeedOf(what, trial.seed, target); };
  PM_ASSIGN_OR_RETURN(int64_t slot,
                      scene.joint.parameters.SlotOf(trial.split.targets.labels[target]));
  if (asking.label == Asking::Label::kWrong) {
    slot = WrongSlot(slot, scene.joint.slots(), seed_of("label"));
  }
  const RowVector features =
      asking.feature == Asking::Feature::kOwn
          ? RowVector(trial.split.targets.features.row(row))
          : RandomDirection(trial.split.targets.features.cols(), seed_of("feature"));
  SeededBits bits(seed_of("release"));
  if (asking.scheme == Asking::Scheme::kAnchored) {
    return AskAnchored(scene, asking.cost.value_or(PrivacyCost{}), {.slot = slot, .row = features},
                       bits);
  }
  if (asking.slots) {
    return Ask(scene.joint, *scene.embedded, asking, trial.k, slot, features, bits);
  }
  return Ask(WithoutSlots(scene, slot), *scene.embedded, asking, trial.k, 0, features, bits);
}

}  // namespace

void Answers::Add(const Scores& scores) {
  class_share.push_back(scores.class_share);
  hit.push_back(scores.hit);
  fidelity.push_back(scores.fidelity);
}

JobResult ToResult(const Answers& answers) {
  JobResult result = {{"class_share", answers.class_share},
                      {"hit", answers.hit},
                      {"fidelity", answers.fidelity},
                      {"residual", {answers.mean_residual}},
                      {"unanswered", {static_cast<double>(answers.unanswered)}}};
  if (!answers.built) result["not_built"] = {1};
  return result;
}

RowVector RandomDirection(Eigen::Index dim, uint64_t seed) {
  std::mt19937_64 bits(seed);
  const auto uniform = [&] { return (static_cast<double>(bits() >> 11) + 1) * 0x1p-53; };
  const RowVector normal = RowVector::NullaryExpr(dim, [&](Eigen::Index /*column*/) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  });
  return normal.normalized();
}

Matrix ExactRows(const JointSetting& joint, const TargetIndependentPart& part, int64_t slot,
                 const RowVector& unit_features) {
  return PrivateIteration(joint, part.start,
                          FeatureGraph(joint, SlotRows(joint, part, slot, unit_features)));
}

absl::StatusOr<Released> ReleaseOf(const JointSetting& joint,
                                   const std::optional<PrivacyCost>& cost, int64_t slot,
                                   const RowVector& unit_features, BitSource& bits) {
  if (cost) {
    PM_ASSIGN_OR_RETURN(TargetIndependentPart part, DrawTargetIndependentPart(joint, *cost, bits));
    PM_ASSIGN_OR_RETURN(std::vector<FloatMatrix> released,
                        ReleaseIterations(joint, part, *cost, slot, unit_features, bits));
    const double noise_stddev = part.noise.mechanism->noise_stddev();
    return Released{
        .rows = std::move(released.back()), .known = std::move(part), .noise_stddev = noise_stddev};
  }
  PM_ASSIGN_OR_RETURN(TargetIndependentPart part, DrawStartAndDummies(joint, bits));
  FloatMatrix rows = ExactRows(joint, part, slot, unit_features).cast<float>();
  return Released{.rows = std::move(rows), .known = std::move(part)};
}

absl::StatusOr<ReleasedSlots> ReleaseAnchored(const AnchoredSetting& setting,
                                              const std::optional<PrivacyCost>& cost,
                                              const PlacedTarget& target, BitSource& bits) {
  // With slots all rows are scaled alike, independently of the cost.
  constexpr PrivacyCost kAny{.epsilon = 1, .delta = 1e-5};
  PM_ASSIGN_OR_RETURN(AnchoredNoise noise, MakeAnchoredNoise(setting, cost.value_or(kAny)));
  PM_ASSIGN_OR_RETURN(std::vector<int64_t> dummies, DrawDummies(setting.joint, bits));
  const Matrix exact = ScaledSlotRows(setting, noise, dummies, target);
  FloatMatrix rows = exact.cast<float>();
  if (cost) {
    PM_ASSIGN_OR_RETURN(rows, noise.mechanism->Release(exact, bits));
  }
  return ReleasedSlots{
      .rows = std::move(rows), .dummies = std::move(dummies), .noise = std::move(noise)};
}

absl::StatusOr<Answers> AskAll(const Scene& scene, const Asking& asking) {
  const Trial& trial = *scene.trial;
  Answers answers;
  double residuals = 0;
  for (size_t target = 0; target < trial.split.targets.labels.size(); ++target) {
    PM_ASSIGN_OR_RETURN(const std::optional<SlotAnswer> found, AskOne(scene, asking, target));
    if (!found) {
      ++answers.unanswered;
      answers.Add({});
      continue;
    }
    residuals += found->relative_residual;
    answers.Add(ScoreOf(found->rows, trial.split.gallery.labels, trial.split.targets.labels[target],
                        trial.nearest[target]));
  }
  const auto answered = static_cast<double>(trial.split.targets.labels.size()) -
                        static_cast<double>(answers.unanswered);
  answers.mean_residual = residuals / std::max(1.0, answered);
  return answers;
}

absl::StatusOr<Answers> BuildAndAskAll(const std::shared_ptr<const Trial>& trial,
                                       const EmbeddingSettings& settings, const Asking& asking) {
  if (const absl::Status valid = Validate(settings); !valid.ok()) {
    return absl::FailedPreconditionError(valid.message());
  }
  const auto scene = MakeScene(trial, settings);
  if (!absl::IsFailedPrecondition(scene.status())) {
    PM_RETURN_IF_ERROR(scene.status());
    return AskAll(**scene, asking);
  }
  Answers none;
  for (size_t i = 0; i < trial->split.targets.labels.size(); ++i) none.Add({});
  none.unanswered = static_cast<int64_t>(none.hit.size());
  none.built = false;
  return none;
}

absl::StatusOr<std::vector<std::vector<int64_t>>> FoundBy(const Scene& scene,
                                                          const Asking& asking) {
  std::vector<std::vector<int64_t>> rows;
  for (size_t target = 0; target < scene.trial->split.targets.labels.size(); ++target) {
    PM_ASSIGN_OR_RETURN(std::optional<SlotAnswer> found, AskOne(scene, asking, target));
    rows.push_back(found ? std::move(found->rows) : std::vector<int64_t>());
  }
  return rows;
}

Answers ScoreRows(const Trial& trial, const Matrix& gallery, const Matrix& targets) {
  Answers answers;
  const auto found = NearestOf(targets, gallery, trial.k);
  const bool searchable = gallery.allFinite();
  for (size_t i = 0; i < found.size(); ++i) {
    if (!searchable || !targets.row(static_cast<Eigen::Index>(i)).allFinite()) {
      ++answers.unanswered;
      answers.Add({});
      continue;
    }
    answers.Add(ScoreOf(found[i], trial.split.gallery.labels, trial.split.targets.labels[i],
                        trial.nearest[i]));
  }
  return answers;
}

Answers ScoreChance(const Trial& trial) {
  Answers answers;
  for (const int32_t label : trial.split.targets.labels) {
    answers.Add(ScoresByChance(trial.split.gallery.labels, label, trial.k));
  }
  return answers;
}

}  // namespace privatemail::client
