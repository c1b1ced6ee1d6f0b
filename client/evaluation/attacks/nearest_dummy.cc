#include <limits>

#include "absl/strings/str_cat.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/attacks/attacks.h"
#include "client/evaluation/attacks/row_prediction.h"
#include "client/evaluation/seeded_bits.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

// The slot whose row is farthest from what any of its candidates would have given.
int64_t WorstExplained(const JointSetting& joint, const RowPrediction& prediction,
                       const Matrix& rows) {
  int64_t worst = 0;
  double farthest = -1;
  for (int64_t slot = 0; slot < joint.slots(); ++slot) {
    const Matrix expected = prediction.RowsOf(slot);
    double nearest = std::numeric_limits<double>::infinity();
    for (const int64_t anchor : joint.of_slot[static_cast<size_t>(slot)]) {
      nearest = std::min(nearest, (expected.row(anchor) - rows.row(slot)).squaredNorm());
    }
    if (nearest > farthest) {
      farthest = nearest;
      worst = slot;
    }
  }
  return worst;
}

absl::StatusOr<std::vector<double>> Attack(const Scene& scene,
                                           const std::optional<PrivacyCost>& cost,
                                           const std::string& part) {
  const LabelledRows& targets = scene.trial->split.targets;
  RowPrediction prediction(scene.joint);
  std::vector<double> right;
  for (size_t i = 0; i < targets.labels.size(); ++i) {
    PM_ASSIGN_OR_RETURN(const int64_t slot, scene.joint.parameters.SlotOf(targets.labels[i]));
    SeededBits bits(SeedOf(part, scene.trial->seed, i));
    PM_ASSIGN_OR_RETURN(const Released released,
                        ReleaseOf(scene.joint, cost, slot,
                                  targets.features.row(static_cast<Eigen::Index>(i)), bits));
    prediction.Start(released.start);
    const Matrix rows = released.rows.cast<double>();
    right.push_back(WorstExplained(scene.joint, prediction, rows) == slot ? 1 : 0);
  }
  return right;
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
          .attack = &Attack};
}

}  // namespace privatemail
