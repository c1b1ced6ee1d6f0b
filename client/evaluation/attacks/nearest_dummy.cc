#include <algorithm>
#include <limits>

#include "client/evaluation/attacks/attacks.h"
#include "client/evaluation/attacks/row_prediction.h"
#include "client/evaluation/attacks/slot_guesses.h"

namespace privatemail {
namespace {

// How far a slot's row is from what any of its candidates would have given.
double Unexplained(const JointSetting& joint, const RowPrediction& prediction, const Matrix& rows,
                   int64_t slot) {
  const Matrix expected = prediction.RowsOf(slot);
  double nearest = std::numeric_limits<double>::infinity();
  for (const int64_t anchor : joint.of_slot[static_cast<size_t>(slot)]) {
    nearest = std::min(nearest, (expected.row(anchor) - rows.row(slot)).squaredNorm());
  }
  return nearest;
}

absl::StatusOr<std::vector<double>> Attack(const Scene& scene,
                                           const std::optional<PrivacyCost>& cost,
                                           const std::string& part) {
  RowPrediction prediction(scene.joint);
  return RightSlots(scene, cost, part, [&](const Released& released) -> absl::StatusOr<int64_t> {
    prediction.Start(released.known.start);
    const Matrix rows = released.rows.cast<double>();
    return SlotOfMost(scene.joint.slots(), [&](int64_t slot) {
      return Unexplained(scene.joint, prediction, rows, slot);
    });
  });
}

}  // namespace

LeakageAttack NearestDummyAttack(int64_t classes) {
  return {.id = "nearest-dummy",
          .title = "An attacker who knows every dummy names the real slot",
          .given =
              "The attacker knows all candidate dummies and the start of the iteration; for every "
              "slot it looks for the dummy that explains the row, and names the slot that none "
              "explains.",
          .choices = classes,
          .bounded = true,
          .attack = &Attack,
          .names_class = true};
}

}  // namespace privatemail
