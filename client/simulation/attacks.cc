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

Right AttackByLikelihood(const Scene& scene, const AttackedReleases& releases, DecoyClass decoys) {
  const Split& split = scene.trial->split();
  std::vector<double> right;
  for (size_t i = 0; i < split.targets.labels.size(); ++i) {
    const int32_t label = split.targets.labels[i];
    const RowVector target = split.targets.features.row(static_cast<Eigen::Index>(i));
    PM_ASSIGN_OR_RETURN(const int64_t other, DrawDecoy(split.gallery, label, decoys,
                                                       SeedOf(absl::StrCat(releases.part, "/other"),
                                                              scene.trial->seed(), i)));
    PM_ASSIGN_OR_RETURN(const int64_t slot, scene.joint.parameters.SlotOf(label));
    PM_ASSIGN_OR_RETURN(
        const int64_t slot_of_other,
        scene.joint.parameters.SlotOf(split.gallery.labels[static_cast<size_t>(other)]));
    SeededBits bits(SeedOf(releases.part, scene.trial->seed(), i));
    PM_ASSIGN_OR_RETURN(const Released released,
                        Release(scene.joint, releases.cost, slot, target, bits));
    const auto away = [&](int64_t in_slot, const RowVector& row) {
      const Matrix exact = ExactRows(scene.joint, released.known, in_slot, row);
      return (released.rows.cast<double>() - exact).norm();
    };
    const double to_target = away(slot, target);
    const double to_other = away(slot_of_other, split.gallery.features.row(other));
    right.push_back(to_target < to_other ? 1 : 0);
  }
  return right;
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
  const Split& split = scene.trial->split();
  RowPrediction prediction(scene.joint);
  std::vector<double> right;
  for (size_t i = 0; i < split.targets.labels.size(); ++i) {
    const int32_t label = split.targets.labels[i];
    const RowVector target = split.targets.features.row(static_cast<Eigen::Index>(i));
    PM_ASSIGN_OR_RETURN(const int64_t slot, scene.joint.parameters.SlotOf(label));
    SeededBits bits(SeedOf(releases.part, scene.trial->seed(), i));
    PM_ASSIGN_OR_RETURN(const Released released,
                        Release(scene.joint, releases.cost, slot, target, bits));
    // In units of the start, whose squares would vanish.
    const double unit = scene.settings().start_stddev;
    prediction.Start(released.known.start);
    const RowVector found =
        Invert(prediction.RowsOf(slot) / unit, scene.joint.anchors->points(),
               released.rows.row(slot).cast<double>() / unit, released.noise_stddev / unit);
    PM_ASSIGN_OR_RETURN(const int64_t decoy, DrawDecoy(split.gallery, label, DecoyClass::kSame,
                                                       SeedOf(absl::StrCat(releases.part, "/decoy"),
                                                              scene.trial->seed(), i)));
    const double to_target = (found - target).squaredNorm();
    const double to_decoy = (found - RowVector(split.gallery.features.row(decoy))).squaredNorm();
    right.push_back(to_target < to_decoy ? 1 : 0);
  }
  return right;
}

// For every target of the scene 1 where `guess` names its slot and 0 where not; -1 names none.
// release: absl::StatusOr<R>(const PlacedTarget&, BitSource&); guess: absl::StatusOr<int64_t>(const
// R&). Errors: theirs.
template <typename ReleaseFn, typename GuessFn>
Right RightSlots(const Scene& scene, const std::string& part, const ReleaseFn& release,
                 const GuessFn& guess) {
  const LabelledRows& targets = scene.trial->split().targets;
  std::vector<double> right;
  for (size_t i = 0; i < targets.labels.size(); ++i) {
    PM_ASSIGN_OR_RETURN(const int64_t slot, scene.joint.parameters.SlotOf(targets.labels[i]));
    const PlacedTarget target{.slot = slot,
                              .row = targets.features.row(static_cast<Eigen::Index>(i))};
    SeededBits bits(SeedOf(part, scene.trial->seed(), i));
    PM_ASSIGN_OR_RETURN(const auto released, release(target, bits));
    PM_ASSIGN_OR_RETURN(const int64_t guessed, guess(released));
    right.push_back(guessed == slot ? 1 : 0);
  }
  return right;
}

auto JointReleaser(const Scene& scene, const std::optional<PrivacyCost>& cost) {
  return [&scene, cost](const PlacedTarget& target, BitSource& bits) {
    return Release(scene.joint, cost, target.slot, target.row, bits);
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

Right AttackDummies(const Scene& scene, const AttackedReleases& releases) {
  const JointSetting& joint = scene.joint;
  const auto guess = [&](const Released& released) -> absl::StatusOr<int64_t> {
    const PlacedTarget none = NoTarget(joint, released.known.dummies);
    return FarthestSlot(released.rows, ExactRows(joint, released.known, none.slot, none.row),
                        joint.slots());
  };
  return RightSlots(scene, releases.part, JointReleaser(scene, releases.cost), guess);
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
  const auto release = [&](const PlacedTarget& target, BitSource& bits) {
    return ChooseCell(NearestCentroids(target.row.cast<float>(), centroids)[0], cells,
                      releases.cost, bits);
  };
  const auto guess = [&](int64_t asked) -> absl::StatusOr<int64_t> {
    return likeliest[static_cast<size_t>(asked)];
  };
  return RightSlots(scene, releases.part, release, guess);
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
  const auto guess = [&](const Released& released) -> absl::StatusOr<int64_t> {
    const absl::StatusOr<Matrix> rows =
        PostProcess(released.rows.cast<double>(), scene.joint.label_graph, scene.settings());
    // One that vanishes or overflows tells nothing: no slot is named.
    if (absl::IsFailedPrecondition(rows.status())) return -1;
    PM_RETURN_IF_ERROR(rows.status());
    return SlotOfMost(scene.joint.slots(),
                      [&](int64_t slot) { return Unusualness(scene.joint, *rows, slot); });
  };
  return RightSlots(scene, releases.part, JointReleaser(scene, releases.cost), guess);
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
