// Collections and neighbours on which joint releases are attacked: targets at opposite poles.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_JOINT_PAIR_H_
#define PRIVATEMAIL_CLIENT_AUDIT_JOINT_PAIR_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/schemes/joint/joint_steps.h"
#include "common/base/matrix.h"

namespace privatemail::client::audit {

struct JointPair {
  std::string what;  // for people
  JointSetting setting;
  PlacedTarget one;
  PlacedTarget other;
  int64_t most_releases = 0;  // of either: each takes long
};

// The papers' settings, dummies that are anchors, all anchors at one pole: both targets, of two
// classes, are opposite to them. The bound has slack there.
absl::StatusOr<JointPair> PairAtThePapersSettings();

// A collection where bounds are nearly reached: all anchors at one pole, and a label graph that
// outweighs the rest and pulls on two rare classes, far from the others and next to each other, so
// that nearly all of the move is that of the slots whose targets change: even noise in L1, for
// which many small moves count as much as one, then hides little else. What the mechanism of `cost`
// hides decides how targets differ. The class, too: they are of the two rare classes, at opposite
// poles, and the slot of the other crosses the sphere with each, so that the degrees of all rows
// change in one sense, as in the bound's worst case. Features alone: they are of one rare class,
// cost.radius apart, as near to either pole. Errors as MakeJointSetting.
absl::StatusOr<JointPair> PairThatTheLabelsPull(const PrivacyCost& cost);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_JOINT_PAIR_H_
