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

namespace privatemail {

// Of every target of the scene 1 where `guess` names its slot, given its release, and 0 where not;
// -1 names none.
// `part` and the target decide the noise. Errors: those of the release and of `guess`.
absl::StatusOr<std::vector<double>> RightSlots(
    const Scene& scene, const std::optional<PrivacyCost>& cost, const std::string& part,
    absl::FunctionRef<absl::StatusOr<int64_t>(const Released&)> guess);

// The slot of the largest score, the first of equals.
int64_t SlotOfMost(int64_t slots, absl::FunctionRef<double(int64_t slot)> score);

}  // namespace privatemail

#endif  // PRIVATEMAIL_CLIENT_EVALUATION_ATTACKS_SLOT_GUESSES_H_
