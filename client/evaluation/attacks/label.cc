#include <algorithm>
#include <map>

#include "absl/status/status.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/attacks/attacks.h"
#include "client/evaluation/attacks/slot_guesses.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

// How far a slot lies from the anchors of its class, in units of their spread. rows: after
// post-processing; where they are is the same up to a similarity before and after alignment.
double Unusualness(const JointSetting& joint, const Matrix& rows, int64_t slot) {
  const auto anchors = rows.bottomRows(rows.rows() - joint.slots());
  const auto& of_class = joint.of_slot[static_cast<size_t>(slot)];
  RowVector mean = RowVector::Zero(rows.cols());
  for (const int64_t anchor : of_class) mean += anchors.row(anchor);
  mean /= static_cast<double>(of_class.size());
  double spread = 0;
  for (const int64_t anchor : of_class) spread += (anchors.row(anchor) - mean).squaredNorm();
  // A class of one anchor has none.
  return (rows.row(slot) - mean).squaredNorm() /
         (spread / static_cast<double>(of_class.size()) + 1e-300);
}

absl::StatusOr<std::vector<double>> AttackSlots(const Scene& scene,
                                                const std::optional<PrivacyCost>& cost,
                                                const std::string& part) {
  const auto guess = [&](const Released& released) -> absl::StatusOr<int64_t> {
    const absl::StatusOr<Matrix> rows =
        PostProcess(released.rows.cast<double>(), scene.joint.label_graph, scene.settings());
    // One that vanishes or overflows tells nothing: no slot is named.
    if (absl::IsFailedPrecondition(rows.status())) return -1;
    PM_RETURN_IF_ERROR(rows.status());
    return SlotOfMost(scene.joint.slots(),
                      [&](int64_t slot) { return Unusualness(scene.joint, *rows, slot); });
  };
  return RightSlots(scene, part, JointReleaser(scene, cost), guess);
}

// Right where more of what comes back is of the target's class than of any other.
absl::StatusOr<std::vector<double>> AttackAlone(const Scene& scene,
                                                const std::optional<PrivacyCost>& cost,
                                                const std::string& /*part*/) {
  PM_ASSIGN_OR_RETURN(const std::vector<std::vector<int64_t>> found,
                      FoundBy(scene, {.cost = cost, .slots = false}));
  std::vector<double> right;
  for (size_t i = 0; i < found.size(); ++i) {
    std::map<int32_t, int> votes;
    int most = 0;
    for (const int64_t row : found[i]) {
      most = std::max(most, ++votes[scene.trial->split.gallery.labels[static_cast<size_t>(row)]]);
    }
    int leaders = 0;
    for (const auto& [label, count] : votes) leaders += count == most ? 1 : 0;
    const bool named =
        most > 0 && leaders == 1 && votes[scene.trial->split.targets.labels[i]] == most;
    right.push_back(named ? 1 : 0);
  }
  return right;
}

}  // namespace

LeakageAttack LabelAttack(int64_t classes, bool slots) {
  if (slots) {
    return {.id = "label",
            .title = "An attacker who sees what the server sees names the class",
            .given =
                "The attacker has the release and the anchors; it post-processes the release "
                "and names the slot that lies farthest from the anchors of its class. Of a release "
                "that vanishes under post-processing it names none.",
            .choices = classes,
            .bound = LeakageAttack::Bound::kApproximate,
            .attack = &AttackSlots,
            .names_class = true};
  }
  return {.id = "label-without-slots",
          .title = "The same without slots, as in the authors' code",
          .given =
              "The only row stands under its own label: the attacker answers the query and "
              "names the class that most of what it returns has.",
          .choices = classes,
          .bound = LeakageAttack::Bound::kNone,
          .attack = &AttackAlone,
          .names_class = true};
}

}  // namespace privatemail::client
