#include <Eigen/Cholesky>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/baselines/baseline.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/attacks/attacks.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/status_macros.h"
#include "common/embedding/affinity.h"

namespace privatemail::client {
namespace {

absl::StatusOr<std::vector<double>> AttackByLikelihood(const Scene& scene,
                                                       const std::optional<PrivacyCost>& cost,
                                                       const std::string& part, DecoyClass decoys) {
  const DataSplit& split = scene.trial->split;
  std::vector<double> right;
  for (size_t i = 0; i < split.targets.labels.size(); ++i) {
    const int32_t label = split.targets.labels[i];
    const RowVector target = split.targets.features.row(static_cast<Eigen::Index>(i));
    const int64_t other = DrawDecoy(split.gallery, label, decoys,
                                    SeedOf(absl::StrCat(part, "/other"), scene.trial->seed, i));
    PM_ASSIGN_OR_RETURN(const int64_t slot, scene.joint.parameters.SlotOf(label));
    PM_ASSIGN_OR_RETURN(
        const int64_t slot_of_other,
        scene.joint.parameters.SlotOf(split.gallery.labels[static_cast<size_t>(other)]));
    SeededBits bits(SeedOf(part, scene.trial->seed, i));
    PM_ASSIGN_OR_RETURN(const Released released, ReleaseOf(scene.joint, cost, slot, target, bits));
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

// The features of whatever has this row: ridge regression over the anchors, whose rows are
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

absl::StatusOr<std::vector<double>> AttackByInversion(const Scene& scene,
                                                      const std::optional<PrivacyCost>& cost,
                                                      const std::string& part) {
  const DataSplit& split = scene.trial->split;
  RowPrediction prediction(scene.joint);
  std::vector<double> right;
  for (size_t i = 0; i < split.targets.labels.size(); ++i) {
    const int32_t label = split.targets.labels[i];
    const RowVector target = split.targets.features.row(static_cast<Eigen::Index>(i));
    PM_ASSIGN_OR_RETURN(const int64_t slot, scene.joint.parameters.SlotOf(label));
    SeededBits bits(SeedOf(part, scene.trial->seed, i));
    PM_ASSIGN_OR_RETURN(const Released released, ReleaseOf(scene.joint, cost, slot, target, bits));
    // In units of the start, whose squares would vanish.
    const double unit = scene.settings().start_stddev;
    prediction.Start(released.known.start);
    const RowVector found =
        Invert(prediction.RowsOf(slot) / unit, scene.joint.anchors->points(),
               released.rows.row(slot).cast<double>() / unit, released.noise_stddev / unit);
    const int64_t decoy = DrawDecoy(split.gallery, label, DecoyClass::kSame,
                                    SeedOf(absl::StrCat(part, "/decoy"), scene.trial->seed, i));
    const double to_target = (found - target).squaredNorm();
    const double to_decoy = (found - RowVector(split.gallery.features.row(decoy))).squaredNorm();
    right.push_back(to_target < to_decoy ? 1 : 0);
  }
  return right;
}

}  // namespace

int64_t DrawDecoy(const LabelledRows& gallery, int32_t label, DecoyClass of, uint64_t seed) {
  std::vector<int64_t> rows;
  for (size_t i = 0; i < gallery.labels.size(); ++i) {
    if ((gallery.labels[i] == label) == (of == DecoyClass::kSame)) {
      rows.push_back(static_cast<int64_t>(i));
    }
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

LeakageAttack LikelihoodAttack(DecoyClass decoys) {
  const bool same = decoys == DecoyClass::kSame;
  return {
      .id = same ? "likelihood-of-class" : "likelihood",
      .title = absl::StrCat("An attacker who knows all but the target tells it from an item of ",
                            same ? "its class" : "another class"),
      .given = absl::StrCat(
          "The attacker knows the start, every dummy that was drawn, the target and an item of ",
          same ? "its class" : "another class, with their classes",
          ", and names the one from which the release is likelier: none tells these two apart "
          "more often. The items are drawn; the guarantee holds for the worst there could be."),
      .choices = 2,
      .bound = LeakageAttack::Bound::kGaussian,
      .attack = [decoys](const Scene& scene, const std::optional<PrivacyCost>& cost,
                         const std::string& part) {
        return AttackByLikelihood(scene, cost, part, decoys);
      }};
}

LeakageAttack InversionAttack() {
  return {.id = "inversion",
          .title = "An attacker who inverts the release tells the target from another item",
          .given =
              "The attacker knows the start and the slot; a ridge regression, fitted on the "
              "anchors, predicts features from the slot's row, and the nearer of the target "
              "and another item of its class is named.",
          .choices = 2,
          .bound = LeakageAttack::Bound::kGaussian,
          .attack = &AttackByInversion};
}

}  // namespace privatemail::client
