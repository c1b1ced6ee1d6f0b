// An attack on the joint release as a whole: targets of two classes at opposite poles.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_JOINT_ATTACK_H_
#define PRIVATEMAIL_CLIENT_AUDIT_JOINT_ATTACK_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"
#include "client/privacy/mechanism.h"
#include "common/base/matrix.h"

namespace privatemail::audit {

// One release under attack: the start and the dummies are public, so whoever attacks knows what
// either target would have released without noise.
struct JointTrial {
  Matrix one;    // the noise-free iterate of the one target
  Matrix other;  // of the other
  std::shared_ptr<const Mechanism> mechanism;
};

// The event: the release lies nearer to `one` along the line between the two. trial: draws
// everything but the noise anew.
Subject AttackJointTrials(std::string name, Guarantee claim,
                          std::function<absl::StatusOr<JointTrial>()> trial);

// The production path of JointScheme::Release without its ledger, on a small collection whose
// anchors and dummies sit at one pole.
absl::StatusOr<Subject> AttackJointRelease(double epsilon, double delta);

}  // namespace privatemail::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_JOINT_ATTACK_H_
