#include "absl/strings/str_cat.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/attacks/attacks.h"
#include "client/evaluation/attacks/decoy.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

// Gaussian noise is the likelier the nearer the release is.
absl::StatusOr<std::vector<double>> Attack(const Scene& scene,
                                           const std::optional<PrivacyCost>& cost,
                                           const std::string& part, DecoyClass decoys) {
  const DataSplit& split = scene.trial->split;
  std::vector<double> right;
  for (size_t i = 0; i < split.targets.labels.size(); ++i) {
    const int32_t label = split.targets.labels[i];
    const RowVector target = split.targets.features.row(static_cast<Eigen::Index>(i));
    const int64_t other = DrawDecoy(split.gallery, label, decoys,
                                    SeedOf(absl::StrCat(part, "/other"), scene.trial->seed, i));
    PM_ASSIGN_OR_RETURN(const int64_t slot, scene.joint.parameters.SlotOf(label));
    PM_ASSIGN_OR_RETURN(
        const int64_t slot_of_other,
        scene.joint.parameters.SlotOf(split.gallery.labels[static_cast<size_t>(other)]));
    SeededBits bits(SeedOf(part, scene.trial->seed, i));
    PM_ASSIGN_OR_RETURN(const Released released, ReleaseOf(scene.joint, cost, slot, target, bits));
    const auto away = [&](int64_t in_slot, const RowVector& row) {
      const Matrix exact = ExactRows(scene.joint, released.known, in_slot, row);
      return (released.rows.cast<double>() - exact).norm();
    };
    const double to_target = away(slot, target);
    const double to_other = away(slot_of_other, split.gallery.features.row(other));
    right.push_back(to_target < to_other ? 1 : 0);
  }
  return right;
}

}  // namespace

LeakageAttack LikelihoodAttack(DecoyClass decoys) {
  const bool same = decoys == DecoyClass::kSame;
  return {
      .id = same ? "likelihood-of-class" : "likelihood",
      .title = absl::StrCat("An attacker who knows all but the target tells it from an item of ",
                            same ? "its class" : "another class"),
      .given = absl::StrCat(
          "The attacker knows the start, every dummy that was drawn, the target and an item of ",
          same ? "its class" : "another class, with their classes",
          ", and names the one from which the release is likelier: none tells these two apart "
          "more often. The items are drawn; the guarantee holds for the worst there could be."),
      .choices = 2,
      .bound = LeakageAttack::Bound::kGaussian,
      .attack = [decoys](const Scene& scene, const std::optional<PrivacyCost>& cost,
                         const std::string& part) { return Attack(scene, cost, part, decoys); }};
}

}  // namespace privatemail::client
