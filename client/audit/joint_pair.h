// Worst-case neighbour pairs for attacks on joint releases: targets at opposite poles of the
// sphere.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_JOINT_PAIR_H_
#define PRIVATEMAIL_CLIENT_AUDIT_JOINT_PAIR_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/schemes/joint/joint_steps.h"
#include "common/base/matrix.h"

namespace privatemail::client::audit {

struct JointPair {
  std::string description;
  JointSetting setting;
  PlacedTarget one;
  PlacedTarget other;
  int64_t max_releases = 0;  // per neighbour; releases are slow
};

// The papers' settings with anchors as dummies, all anchors at one pole and both targets, of two
// classes, at the other. The sensitivity bound has slack here.
absl::StatusOr<JointPair> MakePaperSettingsPair();

// A collection with the settings of a new one (DefaultSettings): ten classes, whose anchors are at
// one pole, and targets of two classes at opposite places of the class code, both at the other
// pole.
struct NewCollectionPair {
  PublicParameters parameters = {};
  Anchors anchors;
  Eigen::RowVectorXf features;  // of both targets
  int64_t one = 0;              // slots
  int64_t other = 0;
};
absl::StatusOr<NewCollectionPair> MakeNewCollectionPair();
// The same for attacks that see the release.
absl::StatusOr<JointPair> MakeDefaultSettingsPair();

// Anchors of two opposite classes at opposite poles, so that a target that crosses is pulled from
// the one to the other: the known part h |C| of the known-anchors bound. Labels weigh next to
// nothing; the class is hidden, and both slots cross. Moves by .98 of the L2 sensitivity.
absl::StatusOr<JointPair> MakeTwoPolesPair();

// A collection where the bounds are nearly tight: all anchors at one pole, and a label graph that
// dominates and pulls on two rare classes with adjacent labels, so that nearly all of the move is
// that of the slots whose targets change. The targets depend on what `cost` hides:
//   class too       of the two rare classes, at opposite poles; their dummies too, so that the
//                   degrees of all rows change in one sense, as in the bound's worst case
//   features alone  of one rare class, cost.radius apart, symmetric between the poles
// Errors as MakeJointSetting.
absl::StatusOr<JointPair> MakeLabelDominatedPair(const PrivacyCost& cost);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_JOINT_PAIR_H_
