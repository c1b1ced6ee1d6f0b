#include "client/audit/joint_attack.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/privacy/accounting/gaussian_tradeoff.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client::audit {
namespace {

using Law = MechanismTraits::Law;
using Protects = MechanismTraits::Protects;
using Transcript = std::vector<TranscriptStep>;

// A distinguishing game: a pair and its release.
struct JointGame {
  JointPair pair;
  PrivacyCost cost;
  ReleaseFn release;

  const MechanismTraits& traits() const { return TraitsOf(cost.mechanism); }

  // A fresh release of one of the pair. Errors: those of the release.
  absl::StatusOr<Transcript> Draw(Neighbour neighbour, BitSource& bits) const;

  // The sum over the steps.
  double Score(const Transcript& transcript) const {
    double sum = 0;
    for (const TranscriptStep& step : transcript) sum += LogLikelihoodRatio(step, traits().law);
    return sum;
  }

  // The difference that the noise of a step hides.
  Matrix Move(const TranscriptStep& step) const {
    return traits().protects == Protects::kInput ? Matrix(pair.one.row - pair.other.row)
                                                 : Matrix(step.one - step.other);
  }
};

absl::StatusOr<Transcript> JointGame::Draw(Neighbour neighbour, BitSource& bits) const {
  PM_ASSIGN_OR_RETURN(TargetIndependentPart part,
                      DrawTargetIndependentPart(pair.setting, cost, bits));
  const PlacedTarget& target = neighbour == Neighbour::kOne ? pair.one : pair.other;
  PM_ASSIGN_OR_RETURN(std::vector<FloatMatrix> released,
                      release(pair.setting, part, cost, target.slot, target.row, bits));

  const auto graph_of = [&](const PlacedTarget& placed) {
    return FeatureGraph(pair.setting, SlotRows(pair.setting, part, placed.slot, placed.row));
  };
  const BorderedAffinity graph_of_one = graph_of(pair.one);
  const BorderedAffinity graph_of_other = graph_of(pair.other);
  Transcript transcript;
  Matrix start = part.start;
  IterationNoise noise = std::move(part.noise);
  for (FloatMatrix& rows : released) {
    if (!transcript.empty()) {
      start = transcript.back().released.cast<double>();
      PM_ASSIGN_OR_RETURN(noise, MakeIterationNoise(pair.setting, start, cost));
    }
    transcript.push_back({.one = PrivateIteration(pair.setting, start, graph_of_one),
                          .other = PrivateIteration(pair.setting, start, graph_of_other),
                          .released = std::move(rows),
                          .noise_stddev = noise.mechanism->noise_stddev(),
                          .sensitivity = noise.sensitivity});
  }
  return transcript;
}

// Estimates from releases that are not counted.
struct Pilot {
  double threshold = 0;  // of the score
  double share = 0;      // of the sensitivity that a step moves by, in its norm
  double loss = 0;       // Laplace: the largest logarithm of a ratio of likelihoods
  double mu = 0;         // move in noise_stddev, all steps together
};

void AddStep(const JointGame& game, const TranscriptStep& step, Pilot* sums) {
  const bool laplace = game.traits().law == Law::kLaplace;
  const double width = laplace ? step.noise_stddev / M_SQRT2 : step.noise_stddev;
  const Matrix move = game.Move(step);
  const double l1 = move.cwiseAbs().sum();
  sums->share += (laplace ? l1 : move.norm()) / step.sensitivity;
  sums->loss += l1 / width;
  sums->mu += move.squaredNorm() / (width * width);
}

// A trade-off curve (a claimed mu) is tested best at threshold 0. With noise on the input the score
// is no likelihood but a side.
bool UsesZeroThreshold(const JointGame& game, const Guarantee& claim) {
  return claim.gaussian_mu.has_value() || game.traits().protects == Protects::kInput;
}

absl::StatusOr<Pilot> RunPilot(const JointGame& game, const Guarantee& claim) {
  constexpr int kReleases = 1000;
  SecureBits bits;
  Pilot sums;
  std::vector<double> scores;
  for (int i = 0; i < kReleases; ++i) {
    PM_ASSIGN_OR_RETURN(const Transcript transcript, game.Draw(Neighbour::kOne, bits));
    scores.push_back(game.Score(transcript));
    for (const TranscriptStep& step : transcript) AddStep(game, step, &sums);
  }
  const auto steps = static_cast<double>(kReleases * game.cost.private_iterations);
  const auto top_decile = scores.begin() + kReleases / 10;
  std::nth_element(scores.begin(), top_decile, scores.end(), std::greater<>());
  return Pilot{.threshold = UsesZeroThreshold(game, claim) ? 0 : *top_decile,
               .share = sums.share / steps,
               .loss = sums.loss / kReleases,
               .mu = std::sqrt(sums.mu / kReleases)};
}

// The pair's share of the sensitivity and the epsilon that can be found on it at most.
std::string DescribeLimit(const Pilot& pilot, Law law, const Guarantee& claim) {
  std::string share = absl::StrFormat("moves by %.2g of the sensitivity", pilot.share);
  if (claim.delta > 0) {
    return absl::StrFormat("%s, so about %.2f is to be found", share,
                           GaussianEpsilon(pilot.mu, claim.delta).value_or(0));  // tiny mu: none
  }
  if (law != Law::kLaplace) return share;
  return absl::StrFormat("%s, so at most %.2f is to be found", share, pilot.loss);
}

absl::StatusOr<Attack> MakeAttack(JointGame made, const Guarantee& claim) {
  const auto game = std::make_shared<const JointGame>(std::move(made));
  PM_ASSIGN_OR_RETURN(const Pilot pilot, RunPilot(*game, claim));
  const std::string event =
      UsesZeroThreshold(*game, claim)
          ? "the nearer noise-free iterate"
          : absl::StrFormat("likelier by more than %.3g in logarithm", pilot.threshold);
  return Attack{.description = absl::StrCat(event, ": ", game->pair.description, "; ",
                                            DescribeLimit(pilot, game->traits().law, claim)),
                .event = [game, threshold = pilot.threshold](
                             Neighbour neighbour, BitSource& bits) -> absl::StatusOr<bool> {
                  PM_ASSIGN_OR_RETURN(const Transcript transcript, game->Draw(neighbour, bits));
                  return game->Score(transcript) > threshold;
                },
                .max_releases = game->pair.max_releases};
}

}  // namespace

double LogLikelihoodRatio(const TranscriptStep& step, Law law) {
  const Matrix released = step.released.cast<double>();
  if (law == Law::kLaplace) {
    const double scale = step.noise_stddev / M_SQRT2;
    return ((released - step.other).cwiseAbs() - (released - step.one).cwiseAbs()).sum() / scale;
  }
  // A box's normaliser depends on the neighbours alone.
  const Matrix from_middle = released - (step.one + step.other) / 2;
  return from_middle.cwiseProduct(step.one - step.other).sum() / std::pow(step.noise_stddev, 2);
}

absl::StatusOr<Subject> AttackJointRelease(const PrivacyCost& cost, const ReleaseFn& release) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("private_iterations", cost.private_iterations, 1, 100));
  std::vector<absl::StatusOr<JointPair>> pairs;
  pairs.push_back(MakeLabelDominatedPair(cost));
  if (cost.mechanism == MechanismKind::kGaussian && cost.private_iterations == 1) {
    pairs.push_back(MakeTwoPolesPair());
    pairs.push_back(MakePaperSettingsPair());
    pairs.push_back(MakeDefaultSettingsPair());
  }
  for (const absl::StatusOr<JointPair>& pair : pairs) PM_RETURN_IF_ERROR(pair.status());
  // The claim does not depend on the collection.
  SecureBits bits;
  PM_ASSIGN_OR_RETURN(const TargetIndependentPart part,
                      DrawTargetIndependentPart(pairs[0]->setting, cost, bits));
  Subject subject{.mechanism = absl::StrCat("joint release, ", TraitsOf(cost.mechanism).name),
                  .claim = part.guarantee};
  if (cost.private_iterations > 1) {
    absl::StrAppend(&subject.mechanism, ", ", cost.private_iterations, " iterations");
  }
  for (absl::StatusOr<JointPair>& pair : pairs) {
    PM_ASSIGN_OR_RETURN(subject.attacks.emplace_back(),
                        MakeAttack({*std::move(pair), cost, release}, subject.claim));
  }
  return subject;
}

std::vector<PrivacyCost> AuditedJointCosts(double epsilon, double delta) {
  std::vector<PrivacyCost> costs;
  for (const MechanismTraits& traits : AllMechanisms()) {
    PrivacyCost& cost = costs.emplace_back();
    cost.epsilon = epsilon;
    if (traits.TakesDelta()) cost.delta = delta;
    cost.mechanism = traits.kind;
    if (traits.protects != Protects::kValue) cost.radius = 2;
  }
  costs.push_back({.epsilon = epsilon, .delta = delta, .private_iterations = 2});
  costs.push_back({.epsilon = epsilon,
                   .delta = delta,
                   .mechanism = MechanismKind::kLaplace,
                   .private_iterations = 40});
  return costs;
}

}  // namespace privatemail::client::audit
