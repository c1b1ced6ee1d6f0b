#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/attacks/attacks.h"
#include "client/evaluation/scene.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/status_macros.h"
#include "common/index/k_means.h"

namespace privatemail::client {
namespace {

// For every target of the scene 1 where `guess` names its slot and 0 where not; -1 names none.
// release: absl::StatusOr<R>(const PlacedTarget&, BitSource&); guess: absl::StatusOr<int64_t>(const
// R&). Errors: theirs.
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

inline auto JointReleaser(const Scene& scene, const std::optional<PrivacyCost>& cost) {
  return [&scene, cost](const PlacedTarget& target, BitSource& bits) {
    return ReleaseOf(scene.joint, cost, target.slot, target.row, bits);
  };
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

using Attacked = absl::StatusOr<std::vector<double>>;

// The slot whose row is farthest from what its dummy would have given. dummies: of all slots, as
// if there were no target.
int64_t FarthestSlot(const FloatMatrix& released, const Matrix& dummies, int64_t slots) {
  const Matrix away = released.cast<double>() - dummies;
  return SlotOfMost(slots, [&](int64_t slot) { return away.row(slot).squaredNorm(); });
}

// The first slot's dummy, as in every other slot.
PlacedTarget NoTarget(const JointSetting& joint, const std::vector<int64_t>& dummies) {
  return {.slot = 0, .row = joint.anchors->points().row(dummies[0])};
}

Attacked AttackDummies(const Scene& scene, const std::optional<PrivacyCost>& cost,
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

// For each cell the slot that is likeliest to ask for it, were the slots equally likely and their
// anchors all their queries. One's own cell is asked for more often than each other one, at
// any epsilon: so it is the slot with the largest share of its anchors in the cell.
std::vector<int64_t> LikeliestSlots(const JointSetting& joint, const FloatMatrix& centroids) {
  const std::vector<int64_t> cell_of =
      NearestCentroids(joint.anchors->points().cast<float>(), centroids);
  const auto share_in = [&](int64_t cell, int64_t slot) {
    const std::vector<int64_t>& anchors = joint.of_slot[static_cast<size_t>(slot)];
    const auto in_cell = std::count_if(anchors.begin(), anchors.end(), [&](int64_t anchor) {
      return cell_of[static_cast<size_t>(anchor)] == cell;
    });
    return static_cast<double>(in_cell) / static_cast<double>(anchors.size());
  };
  std::vector<int64_t> likeliest;
  for (int64_t cell = 0; cell < centroids.rows(); ++cell) {
    likeliest.push_back(
        SlotOfMost(joint.slots(), [&](int64_t slot) { return share_in(cell, slot); }));
  }
  return likeliest;
}

absl::StatusOr<int64_t> Ask(int64_t own, int64_t cells, const std::optional<PrivacyCost>& cost,
                            BitSource& bits) {
  if (!cost) return own;
  PM_ASSIGN_OR_RETURN(
      const CellMechanism mechanism,
      CellMechanism::Create({.cells = cells, .ask = 1, .focus = 1, .epsilon = cost->epsilon}));
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> asked, mechanism.Choose({own}, bits));
  return asked[0];
}

absl::StatusOr<std::vector<double>> AttackCells(const Scene& scene,
                                                const std::optional<PrivacyCost>& cost,
                                                const std::string& part) {
  const JointSetting& joint = scene.joint;
  const int64_t cells = joint.slots();
  const FloatMatrix centroids = KMeans(joint.anchors->points().cast<float>(), cells, {});
  const std::vector<int64_t> likeliest = LikeliestSlots(joint, centroids);
  const auto release = [&](const PlacedTarget& target, BitSource& bits) {
    return Ask(NearestCentroids(target.row.cast<float>(), centroids)[0], cells, cost, bits);
  };
  const auto guess = [&](int64_t asked) -> absl::StatusOr<int64_t> {
    return likeliest[static_cast<size_t>(asked)];
  };
  return RightSlots(scene, part, release, guess);
}

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

LeakageAttack DummiesAttack(int64_t classes) {
  return {.id = "dummies",
          .title = "An attacker who knows every dummy names the real slot",
          .given =
              "The attacker knows every dummy that was drawn and the start of the iteration, and "
              "names the slot whose row is farthest from what its dummy would have given.",
          .choices = classes,
          .bound = LeakageAttack::Bound::kApproximate,
          .attack = &AttackDummies,
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

LeakageAttack CellAttack(int64_t classes) {
  return {.id = "cell",
          .title = "An attacker who sees which cell is asked for names the class",
          .given =
              "The anchors are cut into as many cells as there are classes, and a query asks for "
              "one of them. (At a small epsilon fewer cells tell a little more about a class, at a "
              "large one more cells; the line holds for any.) The attacker has the anchors, the "
              "cells and the one that was asked for, and names the class that "
              "has the largest share of its anchors in it.",
          .choices = classes,
          .bound = LeakageAttack::Bound::kPure,
          .attack = &AttackCells,
          .names_class = true};
}

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
