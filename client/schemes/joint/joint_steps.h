// Internal steps of a joint release, for tests and attacks. Not installed: they give access to
// iterates without noise.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_STEPS_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_STEPS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/privacy/sampling/bit_source.h"
#include "client/schemes/class_ranker.h"
#include "client/schemes/joint/joint_scheme.h"
#include "client/schemes/joint/release_noise.h"
#include "client/schemes/query_limits.h"
#include "common/base/matrix.h"
#include "common/embedding/bordered_affinity.h"
#include "common/embedding/label_graph.h"
#include "common/embedding/public_parameters.h"

namespace privatemail::client {

// A value that is made at its first use.
template <typename T>
struct Lazy {
  std::once_flag once;
  std::optional<T> made;
};

// See RehearsalOf.
struct Rehearsal {
  std::mutex mutex;  // guards the following
  std::optional<Matrix> made;
};

// The public inputs of all releases on a collection (and the client's own rows).
struct JointSetting {
  PublicParameters parameters;
  std::shared_ptr<const FixedRows> anchors;   // unit rows, in the space of targets
  bool own_anchors;                           // they are the client's
  std::optional<Matrix> pool;                 // unit rows of dummies; by default the anchors
  std::vector<std::vector<int64_t>> of_slot;  // rows of the pool, per slot
  LabelGraph label_graph;                     // over slot labels, then anchor labels
  std::vector<int64_t> slot_of_anchor;        // per anchor
  ClientLimits limits = ClientLimits::None();
  // Queries with a label need none.
  std::shared_ptr<Lazy<ClassRanker>> ranker = std::make_shared<Lazy<ClassRanker>>();
  std::shared_ptr<Rehearsal> rehearsal = std::make_shared<Rehearsal>();

  int64_t slots() const { return static_cast<int64_t>(parameters.slot_labels.size()); }
  int64_t rows() const { return slots() + anchors->points().rows(); }
  int64_t feature_dim() const { return anchors->points().cols(); }
};

// See JointScheme::Create. fixed: the `anchors` of another setting with the same anchors and kernel
// denominator, to share; null: made here.
absl::StatusOr<JointSetting> MakeJointSetting(PublicParameters parameters, const Anchors& anchors,
                                              const OwnRows& own = {},
                                              std::shared_ptr<const FixedRows> fixed = nullptr,
                                              const ClientLimits& limits = ClientLimits::None());

// A validated target. Private.
struct PlacedTarget {
  int64_t slot = 0;
  RowVector row;  // of length 1
};

// The part of a release that is drawn before and independently of the target.
struct TargetIndependentPart {
  Matrix start;                  // Q, (slots + anchors) x embedding_dim
  std::vector<int64_t> dummies;  // one row of the pool per slot, the target's slot included
  IterationNoise noise;          // of the first iteration
  Guarantee guarantee;
};
// Draws the start alone: normal values, or the class code, as settings.start says. Public.
absl::StatusOr<Matrix> DrawStart(const JointSetting& setting, BitSource& bits);
// The same without noise and guarantee, for iterations that are not released.
absl::StatusOr<TargetIndependentPart> DrawStartAndDummies(const JointSetting& setting,
                                                          BitSource& bits);
absl::StatusOr<TargetIndependentPart> DrawTargetIndependentPart(const JointSetting& setting,
                                                                const PrivacyCost& cost,
                                                                BitSource& bits);

// The noise of the iteration from `start`, which is public.
absl::StatusOr<IterationNoise> MakeIterationNoise(const JointSetting& setting, const Matrix& start,
                                                  const PrivacyCost& cost);

// The releases of all private iterations, in order; each starts from the release before it. Only
// the last is sent, but the guarantee covers all together. target: unit row, in `slot`; cost: that
// of `part`. Errors: those of `bits` and MakeIterationNoise; INVALID_ARGUMENT: noise on the input
// leaves a zero row.
absl::StatusOr<std::vector<FloatMatrix>> ReleaseIterations(const JointSetting& setting,
                                                           const TargetIndependentPart& part,
                                                           const PrivacyCost& cost, int64_t slot,
                                                           const RowVector& target,
                                                           BitSource& bits);

// The slots' rows: the target (unit row) in `slot`, dummies in the others. Private.
Border SlotRows(const JointSetting& setting, const TargetIndependentPart& part, int64_t slot,
                const RowVector& target);

// The exact feature graph over the slots' rows, then the anchors: the sensitivity bound is for the
// exact map. Private.
BorderedAffinity FeatureGraph(const JointSetting& setting, const Border& slot_rows);

// A release without noise that has a dummy in every slot, finished by all iterations: (slots +
// anchors) x embedding_dim. Public, and computed once. Its cost is that of a release for any
// target: what it takes tells before a charge whether a release keeps the limits.
// Errors of PostProcess; DEADLINE_EXCEEDED: it takes longer than limits.max_computing.
absl::StatusOr<const Matrix*> RehearsalOf(const JointSetting& setting);

// One iteration from `start`, without noise. Private.
Matrix PrivateIteration(const JointSetting& setting, const Matrix& start,
                        const AffinityOperator& feature_graph);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_JOINT_JOINT_STEPS_H_
