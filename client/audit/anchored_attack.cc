#include "client/audit/anchored_attack.h"

#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/audit/joint_attack.h"
#include "common/base/status_macros.h"

namespace privatemail::client::audit {
namespace {

using Law = MechanismTraits::Law;
using Protects = MechanismTraits::Protects;

constexpr int kDim = 2;
constexpr int kCommon = 40;
constexpr int kRare = 4;  // per class, of two
constexpr int64_t kMaxReleases = 200'000;
constexpr double kBallDecides = 2;  // radii
constexpr double kSpeedDecides = .1;

RowVector AtAngle(double angle) {
  RowVector row(kDim);
  row << std::cos(angle), std::sin(angle);
  return row;
}

// One column, in which L1 and L2 agree.
EmbeddingSettings OneColumn() {
  EmbeddingSettings settings;
  settings.embedding_dim = 1;
  settings.alpha = 30;
  return settings;
}

// Most anchors, of class 0, at the pole at angle 0, which dominates all distances; a few of classes
// 1 and 2 around the equator, where their slots' balls then are. One dummy per class: that of class
// 1 at the other pole.
absl::StatusOr<AnchoredSetting> MakePolesSetting() {
  Anchors anchors{FloatMatrix(kCommon + 2 * kRare, kDim), {}};
  for (int i = 0; i < anchors.features.rows(); ++i) {
    const bool common = i < kCommon;
    const int nth = (i - kCommon) / 2;  // of its class
    const double angle = std::numbers::pi * (.4 + .2 * nth / (kRare - 1));
    anchors.features.row(i) = AtAngle(common ? 0 : angle).cast<float>();
    anchors.labels.push_back(common ? 0 : 1 + (i - kCommon) % 2);
  }
  Anchors dummies{FloatMatrix(3, kDim), {0, 1, 2}};
  dummies.features << AtAngle(0).cast<float>(), AtAngle(std::numbers::pi).cast<float>(),
      AtAngle(0).cast<float>();
  PM_ASSIGN_OR_RETURN(PublicParameters parameters,
                      MakePublicParameters("audit", OneColumn(), anchors, {}, "vectors"));
  PM_ASSIGN_OR_RETURN(JointSetting joint,
                      MakeJointSetting(std::move(parameters), anchors, dummies));
  return MakeAnchoredSetting(std::move(joint));
}

// A distinguishing game: a pair and its release.
struct AnchoredGame {
  std::string description;
  AnchoredSetting setting;
  AnchoredNoise noise;
  PlacedTarget one;
  PlacedTarget other;
  Law law;
  AnchoredReleaseFn release;

  absl::StatusOr<double> Score(Neighbour neighbour, BitSource& bits) const {
    PM_ASSIGN_OR_RETURN(const std::vector<int64_t> dummies, DrawDummies(setting.joint, bits));
    TranscriptStep step{.one = ScaledSlotRows(setting, noise, dummies, one),
                        .other = ScaledSlotRows(setting, noise, dummies, other),
                        .noise_stddev = noise.mechanism->noise_stddev(),
                        .sensitivity = noise.sensitivity};
    const PlacedTarget& target = neighbour == Neighbour::kOne ? one : other;
    PM_ASSIGN_OR_RETURN(step.released, release(setting, noise, dummies, target, bits));
    return LogLikelihoodRatio(step, law);
  }

  // The part of the sensitivity that the pair moves by; constant, as each class has one dummy.
  absl::StatusOr<double> MovedShare() const {
    SecureBits bits;
    PM_ASSIGN_OR_RETURN(const std::vector<int64_t> dummies, DrawDummies(setting.joint, bits));
    const Matrix move = ScaledSlotRows(setting, noise, dummies, one) -
                        ScaledSlotRows(setting, noise, dummies, other);
    return (law == Law::kLaplace ? move.cwiseAbs().sum() : move.norm()) / noise.sensitivity;
  }

  // As in joint_attack.h: 0 with a claimed mu, else the top decile of a pilot's scores.
  absl::StatusOr<double> Threshold() const {
    if (noise.guarantee.gaussian_mu.has_value()) return 0;
    constexpr int kReleases = 1000;
    SecureBits bits;
    std::vector<double> scores;
    for (int i = 0; i < kReleases; ++i) {
      PM_ASSIGN_OR_RETURN(scores.emplace_back(), Score(Neighbour::kOne, bits));
    }
    return TopDecile(std::move(scores)) -
           1e-6;  // Laplace scores have an atom at the maximum, up to rounding to float
  }
};

absl::StatusOr<AnchoredGame> MakeGame(const PrivacyCost& cost, const AnchoredReleaseFn& release) {
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  PM_ASSIGN_OR_RETURN(AnchoredSetting setting, MakePolesSetting());
  PM_ASSIGN_OR_RETURN(AnchoredNoise noise, MakeAnchoredNoise(setting, cost));
  std::string description = "of two classes, both slots' rows cross their balls";
  PlacedTarget one{.slot = 1, .row = AtAngle(0)};
  PlacedTarget other{.slot = 2, .row = AtAngle(std::numbers::pi)};
  if (traits.protects != Protects::kValue) {
    description = absl::StrCat("of one class, ", cost.radius, " apart");
    const double half = std::asin(cost.radius / 2);
    one.row = AtAngle(std::numbers::pi / 2 - half);
    other = {.slot = 1, .row = AtAngle(std::numbers::pi / 2 + half)};
  }
  return AnchoredGame{.description = std::move(description),
                      .setting = std::move(setting),
                      .noise = std::move(noise),
                      .one = std::move(one),
                      .other = std::move(other),
                      .law = traits.law,
                      .release = release};
}

}  // namespace

absl::StatusOr<FloatMatrix> ReleaseAnchoredSlots(const AnchoredSetting& setting,
                                                 const AnchoredNoise& noise,
                                                 const std::vector<int64_t>& dummies,
                                                 const PlacedTarget& target, BitSource& bits) {
  return noise.mechanism->Release(ScaledSlotRows(setting, noise, dummies, target), bits);
}

absl::StatusOr<Subject> AttackAnchoredRelease(const PrivacyCost& cost,
                                              const AnchoredReleaseFn& release) {
  PM_ASSIGN_OR_RETURN(AnchoredGame made, MakeGame(cost, release));
  const auto game = std::make_shared<const AnchoredGame>(std::move(made));
  PM_ASSIGN_OR_RETURN(const double share, game->MovedShare());
  PM_ASSIGN_OR_RETURN(const double threshold, game->Threshold());
  Subject subject{.mechanism = absl::StrCat("anchored release, ", TraitsOf(cost.mechanism).name),
                  .claim = game->noise.guarantee};
  subject.attacks.push_back(ThresholdAttack(
      absl::StrFormat("likelier by more than %.3g in logarithm: targets %s; moves by %.2g of the "
                      "sensitivity",
                      threshold, game->description, share),
      [game](Neighbour neighbour, BitSource& bits) { return game->Score(neighbour, bits); },
      threshold, kMaxReleases));
  return subject;
}

std::vector<PrivacyCost> AuditedAnchoredCosts(double epsilon, double delta) {
  std::vector<PrivacyCost> costs;
  for (const MechanismTraits& traits : AllMechanisms()) {
    if (!traits.MayBeAnchored()) continue;
    PrivacyCost cost{.epsilon = epsilon, .mechanism = traits.kind};
    if (traits.TakesDelta()) cost.delta = delta;
    if (traits.protects != Protects::kOutput) {
      costs.push_back(cost);
      continue;
    }
    for (const double radius : {kBallDecides, kSpeedDecides}) {
      cost.radius = radius;
      costs.push_back(cost);
    }
  }
  return costs;
}

}  // namespace privatemail::client::audit
