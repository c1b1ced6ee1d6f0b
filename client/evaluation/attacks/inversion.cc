#include <Eigen/Cholesky>

#include "absl/strings/str_cat.h"
#include "client/evaluation/asking.h"
#include "client/evaluation/attacks/attacks.h"
#include "client/evaluation/attacks/decoy.h"
#include "client/evaluation/attacks/row_prediction.h"
#include "client/seeded_bits/seeded_bits.h"
#include "common/base/status_macros.h"

namespace privatemail::client {
namespace {

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

absl::StatusOr<std::vector<double>> Attack(const Scene& scene,
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

LeakageAttack InversionAttack() {
  return {.id = "inversion",
          .title = "An attacker who inverts the release tells the target from another item",
          .given =
              "The attacker knows the start and the slot; a ridge regression, fitted on the "
              "anchors, predicts features from the slot's row, and the nearer of the target "
              "and another item of its class is named.",
          .choices = 2,
          .bound = LeakageAttack::Bound::kGaussian,
          .attack = &Attack};
}

}  // namespace privatemail::client
