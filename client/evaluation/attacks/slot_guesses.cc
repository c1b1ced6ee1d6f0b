#include "client/evaluation/attacks/slot_guesses.h"

#include "client/evaluation/seeded_bits.h"
#include "common/base/status_macros.h"

namespace privatemail {

absl::StatusOr<std::vector<double>> RightSlots(
    const Scene& scene, const std::optional<PrivacyCost>& cost, const std::string& part,
    absl::FunctionRef<absl::StatusOr<int64_t>(const Released&)> guess) {
  const LabelledRows& targets = scene.trial->split.targets;
  std::vector<double> right;
  for (size_t i = 0; i < targets.labels.size(); ++i) {
    PM_ASSIGN_OR_RETURN(const int64_t slot, scene.joint.parameters.SlotOf(targets.labels[i]));
    SeededBits bits(SeedOf(part, scene.trial->seed, i));
    PM_ASSIGN_OR_RETURN(const Released released,
                        ReleaseOf(scene.joint, cost, slot,
                                  targets.features.row(static_cast<Eigen::Index>(i)), bits));
    PM_ASSIGN_OR_RETURN(const int64_t guessed, guess(released));
    right.push_back(guessed == slot ? 1 : 0);
  }
  return right;
}

int64_t SlotOfMost(int64_t slots, absl::FunctionRef<double(int64_t slot)> score) {
  int64_t most = 0;
  double largest = score(0);
  for (int64_t slot = 1; slot < slots; ++slot) {
    const double of_slot = score(slot);
    if (of_slot > largest) {
      largest = of_slot;
      most = slot;
    }
  }
  return most;
}

}  // namespace privatemail
