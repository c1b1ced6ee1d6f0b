#include "client/audit/joint_attack.h"

#include <utility>
#include <vector>

#include "client/privacy/bit_source.h"
#include "client/release/joint_steps.h"
#include "common/base/status_macros.h"

namespace privatemail::audit {
namespace {

constexpr int kClasses = 2;
constexpr int kAnchors = 60;
constexpr int kDim = 3;

// All at one pole: a target at the other pole pulls as far away as it can. Of the sizes that were
// tried, targets move by the largest part of the bound here: .58 of it on average.
absl::StatusOr<JointSetting> PoleSetting() {
  Anchors anchors{FloatMatrix::Zero(kAnchors, kDim), {}};
  anchors.features.col(0).setOnes();
  for (int i = 0; i < kAnchors; ++i) anchors.labels.push_back(i % kClasses);
  EmbeddingSettings settings;
  settings.embedding_dim = 8;
  PM_ASSIGN_OR_RETURN(
      PublicParameters parameters,
      MakePublicParameters("audit", settings, anchors, /*class_names=*/{}, "vectors"));
  return MakeJointSetting(std::move(parameters), anchors, std::nullopt);
}

}  // namespace

Subject AttackJointTrials(std::string name, Guarantee claim,
                          std::function<absl::StatusOr<JointTrial>()> trial) {
  const auto hits = [trial](Neighbour neighbour, int64_t releases) -> absl::StatusOr<int64_t> {
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
  return {.mechanism = std::move(name),
          .claim = std::move(claim),
          .attacks = {{.what = "targets of two classes at the pole opposite to all anchors; the "
                               "release's nearer noise-free iterate",
                       .hits = hits,
                       .most_releases = 100'000}}};
}

absl::StatusOr<Subject> AttackJointRelease(double epsilon, double delta) {
  PM_ASSIGN_OR_RETURN(JointSetting made, PoleSetting());
  const auto setting = std::make_shared<const JointSetting>(std::move(made));
  const PrivacyCost cost{.epsilon = epsilon, .delta = delta};
  SecureBits bits;
  PM_ASSIGN_OR_RETURN(const TargetFreePart first, DrawTargetFreePart(*setting, cost, bits));
  const RowVector target = -RowVector::Unit(kDim, 0);
  return AttackJointTrials("joint release", first.guarantee, [=]() -> absl::StatusOr<JointTrial> {
    SecureBits fresh;
    PM_ASSIGN_OR_RETURN(TargetFreePart part, DrawTargetFreePart(*setting, cost, fresh));
    const auto iterate = [&](int64_t slot) {
      return PrivateIteration(*setting, part.start, AssembleRows(*setting, part, slot, target));
    };
    return JointTrial{iterate(0), iterate(1), std::move(part.noise.mechanism)};
  });
}

}  // namespace privatemail::audit
