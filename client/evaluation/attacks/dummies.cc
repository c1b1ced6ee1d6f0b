#include "client/evaluation/attacks/attacks.h"
#include "client/evaluation/attacks/slot_guesses.h"

namespace privatemail::client {
namespace {

using Attacked = absl::StatusOr<std::vector<double>>;

// The slot whose row is farthest from what its dummy would have given. dummies: of all slots, as
// if there were no target.
int64_t FarthestSlot(const FloatMatrix& released, const Matrix& dummies, int64_t slots) {
  const Matrix away = released.cast<double>() - dummies;
  return SlotOfMost(slots, [&](int64_t slot) { return away.row(slot).squaredNorm(); });
}

// What is in the first slot where it holds its dummy like all others.
PlacedTarget NoTarget(const JointSetting& joint, const std::vector<int64_t>& dummies) {
  return {.slot = 0, .row = joint.anchors->points().row(dummies[0])};
}

Attacked Attack(const Scene& scene, const std::optional<PrivacyCost>& cost,
                const std::string& part) {
  const JointSetting& joint = scene.joint;
  const auto guess = [&](const Released& released) -> absl::StatusOr<int64_t> {
    const PlacedTarget none = NoTarget(joint, released.known.dummies);
    return FarthestSlot(released.rows, ExactRows(joint, released.known, none.slot, none.row),
                        joint.slots());
  };
  return RightSlots(scene, part, JointReleaser(scene, cost), guess);
}

Attacked AttackAnchored(const Scene& scene, const std::optional<PrivacyCost>& cost,
                        const std::string& part) {
  PM_RETURN_IF_ERROR(scene.anchored.status());
  const AnchoredSetting& setting = *scene.anchored;
  const auto release = [&](const PlacedTarget& target, BitSource& bits) {
    return ReleaseAnchored(setting, cost, target, bits);
  };
  const auto guess = [&](const ReleasedSlots& released) -> absl::StatusOr<int64_t> {
    const PlacedTarget none = NoTarget(setting.joint, released.dummies);
    return FarthestSlot(released.rows,
                        ScaledSlotRows(setting, released.noise, released.dummies, none),
                        setting.joint.slots());
  };
  return RightSlots(scene, part, release, guess);
}

}  // namespace

LeakageAttack DummiesAttack(int64_t classes) {
  return {.id = "dummies",
          .title = "An attacker who knows every dummy names the real slot",
          .given =
              "The attacker knows every dummy that was drawn and the start of the iteration, and "
              "names the slot whose row is farthest from what its dummy would have given.",
          .choices = classes,
          .bound = LeakageAttack::Bound::kApproximate,
          .attack = &Attack,
          .names_class = true};
}

LeakageAttack AnchoredDummiesAttack(int64_t classes) {
  return {.id = "anchored-dummies",
          .title = "An attacker who knows every dummy names the real slot of an anchored release",
          .given =
              "The attacker knows every dummy that was drawn and the slots' noisy rows, out of "
              "which all that is sent is computed, and names the slot whose row is farthest, in "
              "units of its noise, from what its dummy would have given.",
          .choices = classes,
          .bound = LeakageAttack::Bound::kApproximate,
          .attack = &AttackAnchored,
          .names_class = true};
}

}  // namespace privatemail::client
