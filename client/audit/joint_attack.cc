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

// A pair, and how it is released.
struct Game {
  JointPair pair;
  PrivacyCost cost;
  ReleaseFn release;

  const MechanismTraits& traits() const { return TraitsOf(cost.mechanism); }

  absl::StatusOr<Transcript> Draw(Neighbour neighbour, BitSource& bits) const {
    return DrawTranscript(pair, cost, neighbour, release, bits);
  }

  absl::StatusOr<double> Score(Neighbour neighbour, BitSource& bits) const {
    PM_ASSIGN_OR_RETURN(const Transcript transcript, Draw(neighbour, bits));
    return LogLikelihoodRatio(transcript, traits().law);
  }

  // What the noise of a step has to hide.
  Matrix Move(const TranscriptStep& step) const {
    return traits().protects == Protects::kInput ? Matrix(pair.one.row - pair.other.row)
                                                 : Matrix(step.one - step.other);
  }
};

// What releases that are not counted say of the attack.
struct Pilot {
  double threshold = 0;  // of the score
  double share = 0;      // of the sensitivity by which a step moves, in its norm
  double loss = 0;       // Laplace: the largest logarithm of a ratio of likelihoods
  double mu = 0;         // what is moved in widths of the noise, all steps together
};

void AddStep(const Game& game, const TranscriptStep& step, Pilot* sums) {
  const bool laplace = game.traits().law == Law::kLaplace;
  const double width = laplace ? step.noise_stddev / M_SQRT2 : step.noise_stddev;
  const Matrix move = game.Move(step);
  const double l1 = move.cwiseAbs().sum();
  sums->share += (laplace ? l1 : move.norm()) / step.sensitivity;
  sums->loss += l1 / width;
  sums->mu += move.squaredNorm() / (width * width);
}

// Rates that are held against a whole curve, that of a mu, see most from the side that is nearer.
// So do those of noise on the input, where the score is no likelihood but a side.
bool NearerSideWins(const Game& game, const Guarantee& claim) {
  return claim.gaussian_mu.has_value() || game.traits().protects == Protects::kInput;
}

absl::StatusOr<Pilot> RunPilot(const Game& game, const Guarantee& claim) {
  constexpr int kReleases = 1000;
  SecureBits bits;
  Pilot sums;
  std::vector<double> scores;
  for (int i = 0; i < kReleases; ++i) {
    PM_ASSIGN_OR_RETURN(const Transcript transcript, game.Draw(Neighbour::kOne, bits));
    scores.push_back(LogLikelihoodRatio(transcript, game.traits().law));
    for (const TranscriptStep& step : transcript) AddStep(game, step, &sums);
  }
  const auto tenth = scores.begin() + kReleases / 10;
  std::nth_element(scores.begin(), tenth, scores.end(), std::greater<>());
  const auto steps = static_cast<double>(kReleases * game.cost.private_iterations);
  return Pilot{.threshold = NearerSideWins(game, claim) ? 0 : *tenth,
               .share = sums.share / steps,
               .loss = sums.loss / kReleases,
               .mu = std::sqrt(sums.mu / kReleases)};
}

// What limits the attack: how far the pair is apart, and what noise for all of the sensitivity
// leaves.
std::string LimitOf(const Pilot& pilot, Law law, const Guarantee& claim) {
  std::string share = absl::StrFormat("moves by %.2g of the sensitivity", pilot.share);
  if (claim.delta > 0) {
    return absl::StrFormat("%s, so about %.2f is to be found", share,
                           GaussianEpsilon(pilot.mu, claim.delta).value_or(0));  // tiny mu: none
  }
  if (law != Law::kLaplace) return share;
  return absl::StrFormat("%s, so at most %.2f is to be found", share, pilot.loss);
}

absl::StatusOr<Attack> On(Game made, const Guarantee& claim) {
  const auto game = std::make_shared<const Game>(std::move(made));
  PM_ASSIGN_OR_RETURN(const Pilot pilot, RunPilot(*game, claim));
  const std::string event =
      NearerSideWins(*game, claim)
          ? "the nearer noise-free iterate"
          : absl::StrFormat("likelier by more than %.3g in logarithm", pilot.threshold);
  return OnScores(
      absl::StrCat(event, ": ", game->pair.what, "; ", LimitOf(pilot, game->traits().law, claim)),
      [game](Neighbour neighbour, BitSource& bits) { return game->Score(neighbour, bits); },
      pilot.threshold, game->pair.most_releases);
}

// The same for every collection.
absl::StatusOr<Guarantee> ClaimOf(const JointPair& pair, const PrivacyCost& cost) {
  SecureBits bits;
  PM_ASSIGN_OR_RETURN(TargetFreePart part, DrawTargetFreePart(pair.setting, cost, bits));
  return std::move(part.guarantee);
}

std::string NameOf(const PrivacyCost& cost) {
  return absl::StrCat("joint release, ", TraitsOf(cost.mechanism).name,
                      cost.private_iterations > 1
                          ? absl::StrCat(", ", cost.private_iterations, " iterations")
                          : "");
}

}  // namespace

Attack OnScores(std::string what, ScoreFn score, double threshold, int64_t most_releases) {
  const auto hits = [score = std::move(score), threshold](
                        Neighbour neighbour, int64_t releases) -> absl::StatusOr<int64_t> {
    SecureBits bits;
    int64_t hits = 0;
    for (int64_t i = 0; i < releases; ++i) {
      PM_ASSIGN_OR_RETURN(const double of_this, score(neighbour, bits));
      hits += of_this > threshold ? 1 : 0;
    }
    return hits;
  };
  return {.what = std::move(what), .hits = hits, .most_releases = most_releases};
}

absl::StatusOr<Subject> AttackJointRelease(const PrivacyCost& cost, const ReleaseFn& release) {
  PM_RETURN_IF_ERROR(CheckIntegerBetween("private_iterations", cost.private_iterations, 1, 100));
  PM_ASSIGN_OR_RETURN(JointPair labels, PairThatTheLabelsPull(cost));
  Subject subject{.mechanism = NameOf(cost), .claim = {}, .attacks = {}};
  PM_ASSIGN_OR_RETURN(subject.claim, ClaimOf(labels, cost));
  PM_ASSIGN_OR_RETURN(subject.attacks.emplace_back(),
                      On({std::move(labels), cost, release}, subject.claim));
  if (cost.mechanism == MechanismKind::kGaussian && cost.private_iterations == 1) {
    PM_ASSIGN_OR_RETURN(JointPair papers, PairAtThePapersSettings());
    PM_ASSIGN_OR_RETURN(subject.attacks.emplace_back(),
                        On({std::move(papers), cost, release}, subject.claim));
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
