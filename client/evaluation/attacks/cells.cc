#include <algorithm>
#include <cmath>

#include "client/evaluation/attacks/attacks.h"
#include "client/evaluation/attacks/slot_guesses.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "common/index/k_means.h"

namespace privatemail::client {
namespace {

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

// The cell that is asked for.
absl::StatusOr<int64_t> Ask(int64_t own, int64_t cells, const std::optional<PrivacyCost>& cost,
                            BitSource& bits) {
  if (!cost) return own;
  PM_ASSIGN_OR_RETURN(
      const CellMechanism mechanism,
      CellMechanism::Create({.cells = cells, .ask = 1, .focus = 1, .epsilon = cost->epsilon}));
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> asked, mechanism.Choose({own}, bits));
  return asked[0];
}

absl::StatusOr<std::vector<double>> Attack(const Scene& scene,
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

}  // namespace

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
          .attack = &Attack,
          .names_class = true};
}

}  // namespace privatemail::client
