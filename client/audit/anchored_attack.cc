#include "client/audit/anchored_attack.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/audit/joint_attack.h"
#include "client/audit/joint_transcript.h"
#include "common/base/status_macros.h"

namespace privatemail::client::audit {
namespace {

using Law = MechanismTraits::Law;
using Protects = MechanismTraits::Protects;

constexpr int kDim = 2;
constexpr int kCommon = 40;
constexpr int kRare = 4;  // of either of two classes
constexpr int64_t kMostReleases = 200'000;
constexpr double kBallDecides = 2;  // radii
constexpr double kSpeedDecides = .1;

RowVector AtAngle(double angle) {
  RowVector row(kDim);
  row << std::cos(angle), std::sin(angle);
  return row;
}

// One column, over which L1 and L2 agree.
EmbeddingSettings OneColumn() {
  EmbeddingSettings settings;
  settings.embedding_dim = 1;
  settings.alpha = 30;
  return settings;
}

// Most anchors, those of class 0, at the pole at the angle 0, so that it decides how far a row is
// from them all; a few of classes 1 and 2 around the equator, so that their slots' balls lie around
// what an item there would tell. One dummy a class: that of class 1 at the other pole.
absl::StatusOr<AnchoredSetting> BetweenPoles() {
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

// A pair, and how it is released.
struct Game {
  std::string what;
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
                        .released = {},
                        .noise_stddev = noise.mechanism->noise_stddev(),
                        .sensitivity = noise.sensitivity};
    const PlacedTarget& target = neighbour == Neighbour::kOne ? one : other;
    PM_ASSIGN_OR_RETURN(step.released, release(setting, noise, dummies, target, bits));
    return LogLikelihoodRatio(step, law);
  }

  // By how much of the sensitivity the pair moves. Each class has one dummy, so it is always so.
  absl::StatusOr<double> Share() const {
    SecureBits bits;
    PM_ASSIGN_OR_RETURN(const std::vector<int64_t> dummies, DrawDummies(setting.joint, bits));
    const Matrix move = ScaledSlotRows(setting, noise, dummies, one) -
                        ScaledSlotRows(setting, noise, dummies, other);
    return (law == Law::kLaplace ? move.cwiseAbs().sum() : move.norm()) / noise.sensitivity;
  }

  // As the joint attack's pilot: the nearer side where the claim has a mu, else what one in ten of
  // releases that are not counted exceeds.
  absl::StatusOr<double> Threshold() const {
    if (noise.guarantee.gaussian_mu.has_value()) return 0;
    constexpr int kReleases = 1000;
    SecureBits bits;
    std::vector<double> scores;
    for (int i = 0; i < kReleases; ++i) {
      PM_ASSIGN_OR_RETURN(scores.emplace_back(), Score(Neighbour::kOne, bits));
    }
    const auto tenth = scores.begin() + kReleases / 10;
    std::nth_element(scores.begin(), tenth, scores.end(), std::greater<>());
    return *tenth - 1e-6;  // Laplace scores pile up at the greatest, but for a rounding to float
  }
};

absl::StatusOr<Game> GameOf(const PrivacyCost& cost, const AnchoredReleaseFn& release) {
  const MechanismTraits& traits = TraitsOf(cost.mechanism);
  PM_ASSIGN_OR_RETURN(AnchoredSetting setting, BetweenPoles());
  PM_ASSIGN_OR_RETURN(AnchoredNoise noise, AnchoredNoiseOf(setting, cost));
  std::string what = "of two classes, both slots' rows cross their balls";
  PlacedTarget one{.slot = 1, .row = AtAngle(0)};
  PlacedTarget other{.slot = 2, .row = AtAngle(std::numbers::pi)};
  if (traits.protects != Protects::kValue) {
    what = absl::StrCat("of one class, ", cost.radius, " apart");
    const double half = std::asin(cost.radius / 2);
    one.row = AtAngle(std::numbers::pi / 2 - half);
    other = {.slot = 1, .row = AtAngle(std::numbers::pi / 2 + half)};
  }
  return Game{.what = std::move(what),
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
  PM_ASSIGN_OR_RETURN(Game made, GameOf(cost, release));
  const auto game = std::make_shared<const Game>(std::move(made));
  PM_ASSIGN_OR_RETURN(const double share, game->Share());
  PM_ASSIGN_OR_RETURN(const double threshold, game->Threshold());
  Subject subject{.mechanism = absl::StrCat("anchored release, ", TraitsOf(cost.mechanism).name),
                  .claim = game->noise.guarantee,
                  .attacks = {}};
  subject.attacks.push_back(OnScores(
      absl::StrFormat("likelier by more than %.3g in logarithm: targets %s; moves by %.2g of the "
                      "sensitivity",
                      threshold, game->what, share),
      [game](Neighbour neighbour, BitSource& bits) { return game->Score(neighbour, bits); },
      threshold, kMostReleases));
  return subject;
}

std::vector<PrivacyCost> AuditedAnchoredCosts(double epsilon, double delta) {
  std::vector<PrivacyCost> costs;
  for (const MechanismTraits& traits : AllMechanisms()) {
    if (traits.published || traits.protects == Protects::kInput) continue;
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
