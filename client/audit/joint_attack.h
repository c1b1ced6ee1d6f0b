// Attacks on the joint release as a whole: targets of two classes at opposite poles.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_JOINT_ATTACK_H_
#define PRIVATEMAIL_CLIENT_AUDIT_JOINT_ATTACK_H_

#include <cstdint>
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

// pair: for people. The event: the release lies nearer to `one` along the line between the two.
// trial: draws everything but the noise anew.
Attack OnJointTrials(std::string pair, std::function<absl::StatusOr<JointTrial>()> trial,
                     int64_t most_releases);

// The production path of JointScheme::Release without its ledger, on two small collections whose
// anchors sit at one pole: one with the papers' settings, where the bound has slack, and one whose
// label graph outweighs the rest, where the pair moves by nearly all of the bound. Each attack says
// by how much on average, and what the noise, which is made for all of the bound, leaves to be
// found.
absl::StatusOr<Subject> AttackJointRelease(double epsilon, double delta);

}  // namespace privatemail::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_JOINT_ATTACK_H_
