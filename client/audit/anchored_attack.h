// Attacks on the anchored release (PRIVACY.md section 5).
#ifndef PRIVATEMAIL_CLIENT_AUDIT_ANCHORED_ATTACK_H_
#define PRIVATEMAIL_CLIENT_AUDIT_ANCHORED_ATTACK_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"
#include "client/schemes/anchored/anchored_steps.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::audit {

// The noisy slots of a release (ReleaseAnchoredSlots) or a planted fault.
using AnchoredReleaseFn = std::function<absl::StatusOr<FloatMatrix>(
    const AnchoredSetting& setting, const AnchoredNoise& noise, const std::vector<int64_t>& dummies,
    const PlacedTarget& target, BitSource& bits)>;

// As AnchoredScheme::Release: exact rows, then the mechanism.
absl::StatusOr<FloatMatrix> ReleaseAnchoredSlots(const AnchoredSetting& setting,
                                                 const AnchoredNoise& noise,
                                                 const std::vector<int64_t>& dummies,
                                                 const PlacedTarget& target, BitSource& bits);

// The production path of AnchoredScheme::Release without its ledger, with one dummy per class and
// anchors at a pole of the sphere and around its equator:
//   class hidden  targets of two classes and their dummies at the poles: both slots' rows cross
//                 their balls, all of the sensitivity but rounding
//   class given   targets of one class, cost.radius apart around the equator: at radius 2 the row
//                 crosses its ball, at .1 it moves by .81 of what `speed` allows
// One column, in which L1 and L2 agree: tests of the sensitivity cover factors of sqrt(k). The
// score is the log-likelihood ratio, the event that of AttackJointRelease. The rest of a request is
// post-processing of the attacked rows. Errors: as AnchoredScheme::Release of such a cost.
absl::StatusOr<Subject> AttackAnchoredRelease(
    const PrivacyCost& cost, const AnchoredReleaseFn& release = &ReleaseAnchoredSlots);

// The costs of `audit --all`: every mechanism of the scheme; with a radius, one at which the ball
// bounds the move and one at which the speed does.
std::vector<PrivacyCost> AuditedAnchoredCosts(double epsilon, double delta);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_ANCHORED_ATTACK_H_
