#include "client/evaluation/attacks/attacks.h"
#include "client/evaluation/attacks/slot_guesses.h"

namespace privatemail {
namespace {

absl::StatusOr<std::vector<double>> Attack(const Scene& scene,
                                           const std::optional<PrivacyCost>& cost,
                                           const std::string& part) {
  const JointSetting& joint = scene.joint;
  return RightSlots(scene, cost, part, [&](const Released& released) -> absl::StatusOr<int64_t> {
    // As if there were no target: the first slot holds its dummy like all others.
    const RowVector first = joint.anchors->points().row(released.known.dummies[0]);
    const Matrix away =
        released.rows.cast<double>() - ExactRows(joint, released.known, /*slot=*/0, first);
    return SlotOfMost(joint.slots(), [&](int64_t slot) { return away.row(slot).squaredNorm(); });
  });
}

}  // namespace

LeakageAttack DummiesAttack(int64_t classes) {
  return {.id = "dummies",
          .title = "An attacker who knows every dummy names the real slot",
          .given =
              "The attacker knows every dummy that was drawn and the start of the iteration, and "
              "names the slot whose row is farthest from what its dummy would have given.",
          .choices = classes,
          .bounded = true,
          .attack = &Attack,
          .names_class = true};
}

}  // namespace privatemail
