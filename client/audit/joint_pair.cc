#include "client/audit/joint_pair.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/embedding/default_settings.h"

namespace privatemail::client::audit {
namespace {

using Law = MechanismTraits::Law;
using Protects = MechanismTraits::Protects;

constexpr int kPairDim = 3;

// A unit row at this angle from one pole.
RowVector PairRowAtAngle(double angle) {
  return std::cos(angle) * RowVector::Unit(kPairDim, 0) +
         std::sin(angle) * RowVector::Unit(kPairDim, 1);
}

RowVector Pole(double sign) { return sign * RowVector::Unit(kPairDim, 0); }

absl::StatusOr<JointSetting> MakePublicSetting(const EmbeddingSettings& settings,
                                               const Anchors& anchors,
                                               const std::optional<Anchors>& dummies) {
  PM_ASSIGN_OR_RETURN(
      PublicParameters parameters,
      MakePublicParameters("audit", settings, anchors, /*class_names=*/{}, "vectors"));
  return MakeJointSetting(std::move(parameters), anchors, {.dummies = dummies});
}

absl::StatusOr<JointSetting> MakeAnchorsAtOnePole(const EmbeddingSettings& settings,
                                                  std::vector<int32_t> labels,
                                                  const std::optional<Anchors>& dummies) {
  const auto count = static_cast<Eigen::Index>(labels.size());
  return MakePublicSetting(settings, {Pole(1).replicate(count, 1).cast<float>(), std::move(labels)},
                           dummies);
}

EmbeddingSettings LabelDominatedSettings(Law law, int64_t iterations) {
  EmbeddingSettings settings;
  settings.embedding_dim = 1;
  // Bounds are tightest for a wide kernel; the bounded Gaussian's for a narrower one, where a
  // target moves a larger part of the box.
  settings.kernel_bandwidth = law == Law::kBoundedGaussian ? 2 : 50;
  // Every iteration multiplies by about 10 alpha: from the smallest start, 40 decades in all stay
  // below the largest float.
  settings.start_stddev = 1e-30;
  settings.alpha = std::min(1e6, .1 * std::pow(10, 40 / static_cast<double>(iterations)));
  return settings;
}

// Labels of the rare classes, far from the common labels 0 and up and adjacent, so that both are
// pulled alike. Theirs are the last two slots.
constexpr int32_t kRareLabels[] = {100, 101};

// One anchor of either rare class among `count`, the others of the common classes in turn. Dummies
// at the anchors' pole, but of the first rare class at `first_rare`.
absl::StatusOr<JointSetting> MakeTwoRareClasses(const EmbeddingSettings& settings, size_t count,
                                                int32_t common, const RowVector& first_rare) {
  std::vector<int32_t> labels(std::begin(kRareLabels), std::end(kRareLabels));
  while (labels.size() < count) labels.push_back(static_cast<int32_t>(labels.size()) % common);
  Anchors dummies{Pole(1).replicate(common + 2, 1).cast<float>(), {}};
  for (int32_t label = 0; label < common; ++label) dummies.labels.push_back(label);
  dummies.labels.insert(dummies.labels.end(), std::begin(kRareLabels), std::end(kRareLabels));
  dummies.features.row(common) = first_rare.cast<float>();
  return MakeAnchorsAtOnePole(settings, std::move(labels), dummies);
}

int64_t MaxReleases(const MechanismTraits& traits, int64_t iterations) {
  if (traits.law == Law::kBoundedGaussian) return 20'000;  // slow calibration
  return std::min<int64_t>(200'000, 1'000'000 / iterations);
}

}  // namespace

absl::StatusOr<JointPair> MakePaperSettingsPair() {
  EmbeddingSettings settings;
  settings.embedding_dim = 8;
  std::vector<int32_t> labels(60, 0);
  std::fill(labels.begin() + 30, labels.end(), 1);
  PM_ASSIGN_OR_RETURN(JointSetting setting,
                      MakeAnchorsAtOnePole(settings, std::move(labels), std::nullopt));
  return JointPair{"both targets opposite to all anchors, at the papers' settings",
                   std::move(setting),
                   {0, Pole(-1)},
                   {1, Pole(-1)},
                   100'000};
}

absl::StatusOr<NewCollectionPair> MakeNewCollectionPair() {
  constexpr int32_t kClasses = 10;
  constexpr int32_t kAnchors = 4 * kClasses;
  NewCollectionPair pair{.anchors = {Pole(1).replicate(kAnchors, 1).cast<float>(), {}},
                         .features = Pole(-1).cast<float>(),
                         .one = 1,
                         .other = 1 + kClasses / 2};
  for (int32_t i = 0; i < kAnchors; ++i) pair.anchors.labels.push_back(i % kClasses);
  PM_ASSIGN_OR_RETURN(pair.parameters,
                      MakePublicParameters("audit", DefaultSettings(pair.anchors.labels),
                                           pair.anchors, /*class_names=*/{}, "vectors"));
  return pair;
}

absl::StatusOr<JointPair> MakeDefaultSettingsPair() {
  PM_ASSIGN_OR_RETURN(NewCollectionPair pair, MakeNewCollectionPair());
  PM_ASSIGN_OR_RETURN(JointSetting setting,
                      MakeJointSetting(std::move(pair.parameters), pair.anchors));
  return JointPair{"both targets opposite to all anchors, at the settings of a new collection",
                   std::move(setting),
                   {pair.one, Pole(-1)},
                   {pair.other, Pole(-1)},
                   100'000};
}

absl::StatusOr<JointPair> MakeTwoPolesPair() {
  // Eight classes lie on a circle; the second and the sixth are on its diagonal, opposite each
  // other.
  constexpr int32_t kClasses = 8;
  constexpr int32_t kFirst = 1;
  constexpr int32_t kOpposite = 5;
  constexpr int32_t kAnchors = 300;
  EmbeddingSettings settings;
  settings.label_graph = LabelGraphKind::kBalanced;
  settings.start = StartKind::kClasses;
  settings.start_stddev = 1e-3;
  settings.embedding_dim = 2;
  settings.kernel_bandwidth = 50;
  settings.alpha = 1e-6;
  Anchors anchors{FloatMatrix(kAnchors, kPairDim), {}};
  Anchors dummies{FloatMatrix(kClasses, kPairDim), {}};
  for (int32_t i = 0; i < kAnchors; ++i) {
    const bool first = i % 2 == 0;
    anchors.features.row(i) = Pole(first ? 1 : -1).cast<float>();
    const bool rare = i < kClasses && i != kFirst && i != kOpposite;
    anchors.labels.push_back(rare ? i : first ? kFirst : kOpposite);
  }
  for (int32_t slot = 0; slot < kClasses; ++slot) {
    dummies.features.row(slot) = Pole(slot == kOpposite ? 1 : -1).cast<float>();
    dummies.labels.push_back(slot);
  }
  PM_ASSIGN_OR_RETURN(JointSetting setting, MakePublicSetting(settings, anchors, dummies));
  return JointPair{"both slots cross between two poles of anchors, features outweigh the labels",
                   std::move(setting),
                   {kFirst, Pole(1)},
                   {kOpposite, Pole(-1)},
                   50'000};
}

absl::StatusOr<JointPair> MakeLabelDominatedPair(const PrivacyCost& cost) {
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  const bool hides_class = traits.protects == Protects::kValue;
  EmbeddingSettings settings = LabelDominatedSettings(traits.law, cost.private_iterations);
  int32_t common = 1;
  if (traits.law == Law::kLaplace && hides_class && cost.private_iterations == 1) {
    // The code of two common and two rare classes pulls the rare ones along the diagonal of two
    // columns: a bound in L1 needs its sqrt(k).
    settings.embedding_dim = 2;
    settings.start = StartKind::kClasses;
    common = 2;
  }
  // In L2 the pair misses the bound by about 1 / anchors.
  PM_ASSIGN_OR_RETURN(
      JointSetting setting,
      MakeTwoRareClasses(settings, traits.law == Law::kGaussian && hides_class ? 60 : 20, common,
                         Pole(hides_class ? -1 : 1)));
  const int64_t max_releases = MaxReleases(traits, cost.private_iterations);
  if (hides_class) {
    return JointPair{"both slots cross from the anchors' pole, labels outweigh the rest",
                     std::move(setting),
                     {common, Pole(1)},
                     {common + 1, Pole(-1)},
                     max_releases};
  }
  const double arc = 2 * std::asin(*cost.radius / 2);
  const double first = (std::numbers::pi - arc) / 2;
  return JointPair{
      absl::StrCat("targets of one class, ", *cost.radius, " apart, labels outweigh the rest"),
      std::move(setting),
      {common, PairRowAtAngle(first)},
      {common, PairRowAtAngle(first + arc)},
      max_releases};
}

}  // namespace privatemail::client::audit
