#include "client/audit/joint_attack.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/privacy/bit_source.h"
#include "client/privacy/gaussian_tradeoff.h"
#include "client/release/joint_steps.h"
#include "common/base/status_macros.h"

namespace privatemail::audit {
namespace {

constexpr int kClasses = 2;
constexpr int kAnchors = 60;
constexpr int kDim = 3;

// A collection and two targets, one of either class.
struct JointPair {
  std::string what;
  JointSetting setting;
  RowVector one;    // of slot 0
  RowVector other;  // of slot 1
  int64_t most_releases = 0;
};

RowVector Pole(double sign) { return sign * RowVector::Unit(kDim, 0); }

absl::StatusOr<JointSetting> AnchorsAtOnePole(const EmbeddingSettings& settings,
                                              const std::optional<Anchors>& dummies) {
  Anchors anchors{Pole(1).replicate(kAnchors, 1).cast<float>(), {}};
  for (int i = 0; i < kAnchors; ++i) anchors.labels.push_back(i % kClasses);
  PM_ASSIGN_OR_RETURN(
      PublicParameters parameters,
      MakePublicParameters("audit", settings, anchors, /*class_names=*/{}, "vectors"));
  return MakeJointSetting(std::move(parameters), anchors, dummies);
}

// Dummies are anchors, so a target at the other pole pulls as far away as it can.
absl::StatusOr<JointPair> PairAtThePapersSettings() {
  EmbeddingSettings settings;
  settings.embedding_dim = 8;
  PM_ASSIGN_OR_RETURN(JointSetting setting, AnchorsAtOnePole(settings, std::nullopt));
  return JointPair{"both targets opposite to all anchors, at the papers' settings",
                   std::move(setting), Pole(-1), Pole(-1), 100'000};
}

// The label graph pulls every row alike (two classes of one size), and both slots cross the sphere
// at once: the degrees of all rows change in one sense, as in the bound's worst case. What is left
// of its slack is about one part in the number of anchors.
absl::StatusOr<JointPair> PairThatTheLabelsPull() {
  EmbeddingSettings settings;
  settings.embedding_dim = 1;
  settings.alpha = 1e6;
  Anchors dummies{FloatMatrix(kClasses, kDim), {0, 1}};
  dummies.features << Pole(-1).cast<float>(), Pole(1).cast<float>();
  PM_ASSIGN_OR_RETURN(JointSetting setting, AnchorsAtOnePole(settings, dummies));
  return JointPair{"both slots cross from the anchors' pole, labels outweigh the rest",
                   std::move(setting), Pole(1), Pole(-1), 500'000};
}

// A trial, and how much of the sensitivity its pair is apart.
struct TrialAndShare {
  JointTrial trial;
  double share = 0;
};

absl::StatusOr<TrialAndShare> Try(const JointPair& pair, const PrivacyCost& cost) {
  SecureBits bits;
  PM_ASSIGN_OR_RETURN(TargetFreePart part, DrawTargetFreePart(pair.setting, cost, bits));
  const auto iterate = [&](int64_t slot, const RowVector& target) {
    return PrivateIteration(pair.setting, part.start,
                            AssembleRows(pair.setting, part, slot, target));
  };
  JointTrial trial{iterate(0, pair.one), iterate(1, pair.other), std::move(part.noise.mechanism)};
  const double share = (trial.one - trial.other).norm() / part.noise.sensitivity;
  return TrialAndShare{std::move(trial), share};
}

absl::StatusOr<double> MeanShare(const JointPair& pair, const PrivacyCost& cost) {
  constexpr int kTrials = 200;
  double sum = 0;
  for (int i = 0; i < kTrials; ++i) {
    PM_ASSIGN_OR_RETURN(const TrialAndShare tried, Try(pair, cost));
    sum += tried.share;
  }
  return sum / kTrials;
}

// What limits the attack: how far the pair is apart, and what noise for all of the bound leaves.
absl::StatusOr<std::string> LimitOf(const JointPair& pair, const PrivacyCost& cost,
                                    const Guarantee& claim) {
  PM_ASSIGN_OR_RETURN(const double share, MeanShare(pair, cost));
  const double to_be_found =
      GaussianEpsilon(share * claim.gaussian_mu.value(), claim.delta).value_or(0);  // tiny mu: none
  return absl::StrFormat("moves by %.2f of the sensitivity bound, so about %.2f is to be found",
                         share, to_be_found);
}

absl::StatusOr<Attack> OnPair(JointPair made, const PrivacyCost& cost, const Guarantee& claim) {
  const auto pair = std::make_shared<const JointPair>(std::move(made));
  PM_ASSIGN_OR_RETURN(const std::string limit, LimitOf(*pair, cost, claim));
  const auto trial = [pair, cost]() -> absl::StatusOr<JointTrial> {
    PM_ASSIGN_OR_RETURN(TrialAndShare tried, Try(*pair, cost));
    return std::move(tried.trial);
  };
  return OnJointTrials(absl::StrCat(pair->what, "; ", limit), trial, pair->most_releases);
}

}  // namespace

Attack OnJointTrials(std::string pair, std::function<absl::StatusOr<JointTrial>()> trial,
                     int64_t most_releases) {
  const auto hits = [trial = std::move(trial)](Neighbour neighbour,
                                               int64_t releases) -> absl::StatusOr<int64_t> {
    SecureBits bits;
    int64_t hits = 0;
    for (int64_t i = 0; i < releases; ++i) {
      PM_ASSIGN_OR_RETURN(const JointTrial t, trial());
      const Matrix& value = neighbour == Neighbour::kOne ? t.one : t.other;
      PM_ASSIGN_OR_RETURN(const FloatMatrix released, t.mechanism->Release(value, bits));
      const Matrix from_middle = released.cast<double>() - (t.one + t.other) / 2;
      hits += from_middle.cwiseProduct(t.one - t.other).sum() > 0 ? 1 : 0;
    }
    return hits;
  };
  return {.what = absl::StrCat("the nearer noise-free iterate: ", pair),
          .hits = hits,
          .most_releases = most_releases};
}

absl::StatusOr<Subject> AttackJointRelease(double epsilon, double delta) {
  const PrivacyCost cost{.epsilon = epsilon, .delta = delta};
  PM_ASSIGN_OR_RETURN(JointPair papers, PairAtThePapersSettings());
  PM_ASSIGN_OR_RETURN(JointPair labels, PairThatTheLabelsPull());
  SecureBits bits;
  PM_ASSIGN_OR_RETURN(const TargetFreePart part, DrawTargetFreePart(papers.setting, cost, bits));
  const Guarantee& claim = part.guarantee;  // the same for every collection
  Subject subject{.mechanism = "joint release", .claim = claim, .attacks = {}};
  PM_ASSIGN_OR_RETURN(subject.attacks.emplace_back(), OnPair(std::move(papers), cost, claim));
  PM_ASSIGN_OR_RETURN(subject.attacks.emplace_back(), OnPair(std::move(labels), cost, claim));
  return subject;
}

}  // namespace privatemail::audit
