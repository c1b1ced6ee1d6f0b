// Attackers who name the slot that holds the target.
#ifndef PRIVATEMAIL_CLIENT_EVALUATION_ATTACKS_SLOT_GUESSES_H_
#define PRIVATEMAIL_CLIENT_EVALUATION_ATTACKS_SLOT_GUESSES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/scene.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/status_macros.h"

namespace privatemail::client {

// Of every target of the scene 1 where `guess` names its slot, given its release, and 0 where not;
// -1 names none. `part` and the target decide the noise. Errors: those of `release` and of `guess`.
//
// release: absl::StatusOr<R>(const PlacedTarget&, BitSource&); guess: absl::StatusOr<int64_t>(const
// R&), which sees nothing of the target but this.
template <typename Release, typename Guess>
absl::StatusOr<std::vector<double>> RightSlots(const Scene& scene, const std::string& part,
                                               const Release& release, const Guess& guess) {
  const LabelledRows& targets = scene.trial->split.targets;
  std::vector<double> right;
  for (size_t i = 0; i < targets.labels.size(); ++i) {
    PM_ASSIGN_OR_RETURN(const int64_t slot, scene.joint.parameters.SlotOf(targets.labels[i]));
    const PlacedTarget target{.slot = slot,
                              .row = targets.features.row(static_cast<Eigen::Index>(i))};
    SeededBits bits(SeedOf(part, scene.trial->seed, i));
    PM_ASSIGN_OR_RETURN(const auto released, release(target, bits));
    PM_ASSIGN_OR_RETURN(const int64_t guessed, guess(released));
    right.push_back(guessed == slot ? 1 : 0);
  }
  return right;
}

// Joint releases at this cost, for RightSlots. The scene must outlive it.
inline auto JointReleaser(const Scene& scene, const std::optional<PrivacyCost>& cost) {
  return [&scene, cost](const PlacedTarget& target, BitSource& bits) {
    return ReleaseOf(scene.joint, cost, target.slot, target.row, bits);
  };
}

// The slot of the largest score, the first of equals.
int64_t SlotOfMost(int64_t slots, absl::FunctionRef<double(int64_t slot)> score);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_ATTACKS_SLOT_GUESSES_H_
