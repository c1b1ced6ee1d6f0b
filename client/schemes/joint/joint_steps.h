// The steps of a joint release, apart, so that tests can look between them. Not installed: a caller
// of these could let a noise-free iteration out.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_STEPS_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_STEPS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "privatemail/bit_source.h"
#include "privatemail/joint_scheme.h"
#include "client/schemes/release_noise.h"
#include "common/base/matrix.h"
#include "common/embedding/bordered_affinity.h"
#include "common/embedding/label_graph.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {

// Public, the same for every release on a collection (and pool of dummies).
struct JointSetting {
  PublicParameters parameters;
  std::shared_ptr<const FixedRows> anchors;   // unit rows
  std::optional<Matrix> pool;                 // unit rows, dummies to draw; none: the anchors are
  std::vector<std::vector<int64_t>> of_slot;  // rows of the pool that belong to each slot
  LabelGraph label_graph;                     // over slot labels, then anchor labels
  Matrix class_means;  // slots x d: sum of each class's unit anchors, scaled to length 1
  std::vector<int64_t> slot_of_anchor = {};  // one for each anchor

  int64_t slots() const { return static_cast<int64_t>(parameters.slot_labels.size()); }
  int64_t rows() const { return slots() + anchors->points().rows(); }
};

// See JointScheme::Create. fixed: the `anchors` of another setting with the same anchors and the
// same kernel denominator, to be shared; null: they are made.
absl::StatusOr<JointSetting> MakeJointSetting(PublicParameters parameters, const Anchors& anchors,
                                              const std::optional<Anchors>& dummies,
                                              std::shared_ptr<const FixedRows> fixed = nullptr);

// JointScheme::GuessLabel.
absl::StatusOr<int32_t> NearestClass(const JointSetting& setting,
                                     const Eigen::RowVectorXf& features);

// A target as releases take it. Private.
struct PlacedTarget {
  int64_t slot = 0;
  RowVector row;  // of length 1
};
// INVALID_ARGUMENT: features or label as JointScheme::Release says.
absl::StatusOr<PlacedTarget> Place(const JointSetting& setting, const Target& target);

// All of a release that does not depend on the target. Drawn before the target is looked at.
struct TargetIndependentPart {
  Matrix start;  // Q, (slots + anchors) x embedding_dim
  // Rows of the pool, or of the anchors: one for every slot, the target's included.
  std::vector<int64_t> dummies;
  IterationNoise noise;  // of the first iteration
  Guarantee guarantee;
};
// The dummies alone.
absl::StatusOr<std::vector<int64_t>> DrawDummies(const JointSetting& setting, BitSource& bits);
// Without noise and guarantee, for an iteration that goes nowhere.
absl::StatusOr<TargetIndependentPart> DrawStartAndDummies(const JointSetting& setting, BitSource& bits);
// All of it.
absl::StatusOr<TargetIndependentPart> DrawTargetIndependentPart(const JointSetting& setting,
                                                  const PrivacyCost& cost, BitSource& bits);

// The noise of the iteration that begins at `start`, which is public.
absl::StatusOr<IterationNoise> MakeIterationNoise(const JointSetting& setting, const Matrix& start,
                                         const PrivacyCost& cost);

// The part of a release that sees the target: what each private iteration releases, in order. Every
// one after the first starts from what was released by the one before. The last is what leaves the
// machine; the guarantee holds for all of them together. target: unit row, in `slot`; cost: what
// `part` was drawn for. Errors: those of `bits` and of MakeIterationNoise, and INVALID_ARGUMENT where noise on
// the input leaves no direction.
absl::StatusOr<std::vector<FloatMatrix>> ReleaseIterations(const JointSetting& setting,
                                                           const TargetIndependentPart& part,
                                                           const PrivacyCost& cost, int64_t slot,
                                                           const RowVector& target,
                                                           BitSource& bits);

// The rows of the slots: every slot's dummy, the target in place of the one in `slot`. target: unit
// row. Private.
Border SlotRows(const JointSetting& setting, const TargetIndependentPart& part, int64_t slot,
                const RowVector& target);

// The graph over these rows and, after them, the anchors, for every private iteration of a release.
// Exact: the sensitivity is that of the exact map. Private.
BorderedAffinity FeatureGraph(const JointSetting& setting, const Border& slot_rows);

// One iteration from the start, without noise. Private.
Matrix PrivateIteration(const JointSetting& setting, const Matrix& start,
                        const AffinityOperator& feature_graph);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_STEPS_H_
