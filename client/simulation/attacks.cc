#include "client/simulation/attacks.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <map>
#include <random>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/privacy/mechanisms/cell_mechanism.h"
#include "client/seeded_bits/seeded_bits.h"
#include "client/simulation/queries.h"
#include "common/base/status_macros.h"
#include "common/embedding/affinity.h"
#include "common/index/k_means.h"

namespace privatemail::client::simulation {
namespace {

using Right = absl::StatusOr<std::vector<double>>;

// One of the scene's targets.
struct AttackedTarget {
  size_t number;
  int32_t label;
  int64_t slot;
  RowVector row;
};

// For every target of the scene 1 where the attacker is right and 0 where not. is_right:
// absl::StatusOr<bool>(const AttackedTarget&, BitSource&), with the bits of the target's release.
template <typename IsRight>
Right AttackTargets(const Scene& scene, const AttackedReleases& releases, const IsRight& is_right) {
  const LabelledRows& targets = scene.trial->split().targets;
  std::vector<double> right;
  for (size_t i = 0; i < targets.labels.size(); ++i) {
    PM_ASSIGN_OR_RETURN(const int64_t slot, scene.joint.parameters.SlotOf(targets.labels[i]));
    SeededBits bits(SeedOf(releases.part, scene.trial->seed(), i));
    PM_ASSIGN_OR_RETURN(const bool found,
                        is_right(AttackedTarget{i, targets.labels[i], slot,
                                                targets.features.row(static_cast<Eigen::Index>(i))},
                                 bits));
    right.push_back(found ? 1 : 0);
  }
  return right;
}

// Another item for a target to be confused with: a row of the gallery.
absl::StatusOr<int64_t> DecoyOf(const Scene& scene, const AttackedReleases& releases,
                                const char* what, const AttackedTarget& target, DecoyClass of) {
  return DrawDecoy(scene.trial->split().gallery, target.label, of,
                   SeedOf(absl::StrCat(releases.part, what), scene.trial->seed(), target.number));
}

Right AttackByLikelihood(const Scene& scene, const AttackedReleases& releases, DecoyClass decoys) {
  const LabelledRows& gallery = scene.trial->split().gallery;
  return AttackTargets(
      scene, releases, [&](const AttackedTarget& target, BitSource& bits) -> absl::StatusOr<bool> {
        PM_ASSIGN_OR_RETURN(const int64_t other,
                            DecoyOf(scene, releases, "/other", target, decoys));
        PM_ASSIGN_OR_RETURN(
            const int64_t slot_of_other,
            scene.joint.parameters.SlotOf(gallery.labels[static_cast<size_t>(other)]));
        PM_ASSIGN_OR_RETURN(const Released released,
                            Release(scene.joint, releases.cost, target.slot, target.row, bits));
        const auto away = [&](int64_t in_slot, const RowVector& row) {
          const Matrix exact = ExactRows(scene.joint, released.known, in_slot, row);
          return (released.rows.cast<double>() - exact).norm();
        };
        return away(target.slot, target.row) < away(slot_of_other, gallery.features.row(other));
      });
}

// The features of the target with this row: ridge regression over the anchors, whose rows are
// `expected`. The penalty is the noise's variance, which makes it the best linear prediction from a
// noisy row. expected: p x k; features: p x d.
RowVector Invert(const Matrix& expected, const Matrix& features, const RowVector& row,
                 double noise_stddev) {
  const RowVector mean_row = expected.colwise().mean();
  const RowVector mean_features = features.colwise().mean();
  const Matrix x = expected.rowwise() - mean_row;
  const Matrix y = features.rowwise() - mean_features;
  Matrix normal = x.transpose() * x;
  const auto count = static_cast<double>(x.rows());
  // Without noise, as much as rounding needs.
  normal.diagonal().array() +=
      count * noise_stddev * noise_stddev + 1e-12 * normal.trace() + 1e-300;
  const Matrix slope = normal.ldlt().solve(x.transpose() * y);
  return mean_features + (row - mean_row) * slope;
}

Right AttackByInversion(const Scene& scene, const AttackedReleases& releases) {
  RowPrediction prediction(scene.joint);
  return AttackTargets(
      scene, releases, [&](const AttackedTarget& target, BitSource& bits) -> absl::StatusOr<bool> {
        PM_ASSIGN_OR_RETURN(const Released released,
                            Release(scene.joint, releases.cost, target.slot, target.row, bits));
        // In units of the start, whose squares would vanish.
        const double unit = scene.settings().start_stddev;
        prediction.Start(released.known.start);
        const RowVector found = Invert(
            prediction.RowsOf(target.slot) / unit, scene.joint.anchors->points(),
            released.rows.row(target.slot).cast<double>() / unit, released.noise_stddev / unit);
        PM_ASSIGN_OR_RETURN(const int64_t decoy,
                            DecoyOf(scene, releases, "/decoy", target, DecoyClass::kSame));
        return (found - target.row).squaredNorm() <
               (found - RowVector(scene.trial->split().gallery.features.row(decoy))).squaredNorm();
      });
}

// An attack that names a slot after a joint release. guess: absl::StatusOr<int64_t>(const
// Released&); -1 names none.
template <typename GuessFn>
Right NameSlots(const Scene& scene, const AttackedReleases& releases, const GuessFn& guess) {
  return AttackTargets(
      scene, releases, [&](const AttackedTarget& target, BitSource& bits) -> absl::StatusOr<bool> {
        PM_ASSIGN_OR_RETURN(const Released released,
                            Release(scene.joint, releases.cost, target.slot, target.row, bits));
        PM_ASSIGN_OR_RETURN(const int64_t guessed, guess(released));
        return guessed == target.slot;
      });
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

Right AttackDummies(const Scene& scene, const AttackedReleases& releases) {
  const JointSetting& joint = scene.joint;
  return NameSlots(scene, releases, [&](const Released& released) -> absl::StatusOr<int64_t> {
    // As if there were no target: the first slot has its dummy, as every other slot.
    const RowVector dummy = joint.anchors->points().row(released.known.dummies[0]);
    const Matrix away =
        released.rows.cast<double>() - ExactRows(joint, released.known, /*slot=*/0, dummy);
    return SlotOfMost(joint.slots(), [&](int64_t slot) { return away.row(slot).squaredNorm(); });
  });
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

absl::StatusOr<int64_t> ChooseCell(int64_t own, int64_t cells,
                                   const std::optional<PrivacyCost>& cost, BitSource& bits) {
  if (!cost) return own;
  PM_ASSIGN_OR_RETURN(
      const CellMechanism mechanism,
      CellMechanism::Create({.cells = cells, .ask = 1, .focus = 1, .epsilon = cost->epsilon}));
  PM_ASSIGN_OR_RETURN(const std::vector<int64_t> asked, mechanism.Choose({own}, bits));
  return asked[0];
}

Right AttackCells(const Scene& scene, const AttackedReleases& releases) {
  const JointSetting& joint = scene.joint;
  const int64_t cells = joint.slots();
  const FloatMatrix centroids = KMeans(joint.anchors->points().cast<float>(), cells, {});
  const std::vector<int64_t> likeliest = LikeliestSlots(joint, centroids);
  return AttackTargets(
      scene, releases, [&](const AttackedTarget& target, BitSource& bits) -> absl::StatusOr<bool> {
        PM_ASSIGN_OR_RETURN(const int64_t asked,
                            ChooseCell(NearestCentroids(target.row.cast<float>(), centroids)[0],
                                       cells, releases.cost, bits));
        return likeliest[static_cast<size_t>(asked)] == target.slot;
      });
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

Right AttackSlots(const Scene& scene, const AttackedReleases& releases) {
  return NameSlots(scene, releases, [&](const Released& released) -> absl::StatusOr<int64_t> {
    const absl::StatusOr<Matrix> rows =
        PostProcess(released.rows.cast<double>(), scene.joint.label_graph, scene.settings());
    // One that vanishes or overflows tells nothing: no slot is named.
    if (absl::IsFailedPrecondition(rows.status())) return -1;
    PM_RETURN_IF_ERROR(rows.status());
    return SlotOfMost(scene.joint.slots(),
                      [&](int64_t slot) { return Unusualness(scene.joint, *rows, slot); });
  });
}

// Right where more of what comes back is of the target's class than of any other.
Right AttackAlone(const Scene& scene, const AttackedReleases& releases) {
  PM_ASSIGN_OR_RETURN(const Answers answers,
                      QueryAll(scene, {.cost = releases.cost, .slots = false}));
  const std::vector<std::vector<int64_t>>& found = answers.rows;
  std::vector<double> right;
  for (size_t i = 0; i < found.size(); ++i) {
    std::map<int32_t, int> votes;
    int most = 0;
    for (const int64_t row : found[i]) {
      most = std::max(most, ++votes[scene.trial->split().gallery.labels[static_cast<size_t>(row)]]);
    }
    int leaders = 0;
    for (const auto& [label, count] : votes) leaders += count == most ? 1 : 0;
    const bool named =
        most > 0 && leaders == 1 && votes[scene.trial->split().targets.labels[i]] == most;
    right.push_back(named ? 1 : 0);
  }
  return right;
}

struct Attacker {
  absl::string_view name;
  Right (*attack)(const Scene& scene, const AttackedReleases& releases);
};
constexpr Attacker kAttackers[] = {
    {"likelihood",
     [](const Scene& scene, const AttackedReleases& releases) {
       return AttackByLikelihood(scene, releases, DecoyClass::kOther);
     }},
    {"likelihood-of-class",
     [](const Scene& scene, const AttackedReleases& releases) {
       return AttackByLikelihood(scene, releases, DecoyClass::kSame);
     }},
    {"dummies", &AttackDummies},
    {"label", &AttackSlots},
    {"label-without-slots", &AttackAlone},
    {"cell", &AttackCells},
    {"inversion", &AttackByInversion},
};

}  // namespace

absl::StatusOr<int64_t> DrawDecoy(const LabelledRows& gallery, int32_t label, DecoyClass of,
                                  uint64_t seed) {
  std::vector<int64_t> rows;
  for (size_t i = 0; i < gallery.labels.size(); ++i) {
    if ((gallery.labels[i] == label) == (of == DecoyClass::kSame)) {
      rows.push_back(static_cast<int64_t>(i));
    }
  }
  if (rows.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the gallery has no item to confuse a target of class ", label, " with"));
  }
  std::mt19937_64 bits(seed);
  return rows[bits() % rows.size()];
}

RowPrediction::RowPrediction(const JointSetting& joint)
    : joint_(joint),
      among_anchors_(
          GaussianAffinity(joint.anchors->points(), joint.anchors->kernel_denominator())),
      to_classes_(Matrix::Zero(among_anchors_.rows(), joint.slots())) {
  among_anchors_.diagonal().setOnes();
  for (int64_t c = 0; c < joint.slots(); ++c) {
    const auto& candidates = joint.of_slot[static_cast<size_t>(c)];
    for (const int64_t anchor : candidates) to_classes_.col(c) += among_anchors_.col(anchor);
    to_classes_.col(c) /= static_cast<double>(candidates.size());
  }
}

void RowPrediction::Start(const Matrix& start) {
  start_ = start;
  pull_of_labels_ = joint_.parameters.settings.alpha * joint_.label_graph.MultiplyLaplacian(start);
  sums_ = among_anchors_ * start.bottomRows(among_anchors_.rows()) +
          to_classes_ * start.topRows(joint_.slots());
  degrees_ = among_anchors_.rowwise().sum() + to_classes_.rowwise().sum();
}

Matrix RowPrediction::RowsOf(int64_t slot) const {
  // A row has no affinity to itself.
  const Vector own = to_classes_.col(slot);
  const Matrix sums =
      (sums_ - own * start_.row(slot)).rowwise() + RowVector(pull_of_labels_.row(slot));
  const Vector degrees = degrees_ - own;
  return .5 * ((sums.array().colwise() / degrees.array()).matrix().rowwise() +
               RowVector(start_.row(slot)));
}

Right Attack(absl::string_view name, const Scene& scene, const AttackedReleases& releases) {
  for (const Attacker& attacker : kAttackers) {
    if (attacker.name == name) return attacker.attack(scene, releases);
  }
  const std::string names = absl::StrJoin(
      kAttackers, ", ",
      [](std::string* text, const Attacker& one) { absl::StrAppend(text, one.name); });
  return absl::InvalidArgumentError(
      absl::StrCat("name must be one of ", names, ", but is \"", name, "\""));
}

}  // namespace privatemail::client::simulation
