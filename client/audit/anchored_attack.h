// Attacks on the anchored release (PRIVACY.md section 5).
#ifndef PRIVATEMAIL_CLIENT_AUDIT_ANCHORED_ATTACK_H_
#define PRIVATEMAIL_CLIENT_AUDIT_ANCHORED_ATTACK_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"
#include "privatemail/bit_source.h"
#include "client/schemes/anchored/anchored_steps.h"

namespace privatemail::client::audit {

// The noisy slots of a release, or a fault in their place.
using AnchoredReleaseFn = std::function<absl::StatusOr<FloatMatrix>(
    const AnchoredSetting& setting, const AnchoredNoise& noise, const std::vector<int64_t>& dummies,
    const PlacedTarget& target, BitSource& bits)>;

// As AnchoredScheme::Release does it: exact rows, then the mechanism.
absl::StatusOr<FloatMatrix> ReleaseAnchoredSlots(const AnchoredSetting& setting,
                                                 const AnchoredNoise& noise,
                                                 const std::vector<int64_t>& dummies,
                                                 const PlacedTarget& target, BitSource& bits);

// The production path of AnchoredScheme::Release without its ledger and its draw of dummies, of
// which there is one a class: anchors at a pole of the sphere and around its equator. Where the
// class is hidden, the targets are of two classes and they and the dummies at the poles, so that
// both slots' rows cross their balls: all of the sensitivity but rounding. Else they are of one
// class, cost.radius apart around the equator: at 2 the row crosses its ball, too; at .1 it moves
// by .81 of what `speed` allows. One column, over which L1 and L2 agree: what a sqrt(k) forgotten
// would do is left to tests of the sensitivity. The score is the logarithm of the likelihood ratio,
// the event as in joint_attack.h. Everything that is sent follows from what is attacked and public
// values. Errors as AnchoredScheme::Release of such a cost.
absl::StatusOr<Subject> AttackAnchoredRelease(
    const PrivacyCost& cost, const AnchoredReleaseFn& release = &ReleaseAnchoredSlots);

// What `audit --all` attacks: every mechanism that the scheme takes, where it takes a radius with
// one over which the ball decides and with one over which the speed does.
std::vector<PrivacyCost> AuditedAnchoredCosts(double epsilon, double delta);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_ANCHORED_ATTACK_H_
