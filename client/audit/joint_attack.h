// Attacks on the joint release as a whole, by any mechanism and over any private iterations.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_JOINT_ATTACK_H_
#define PRIVATEMAIL_CLIENT_AUDIT_JOINT_ATTACK_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"
#include "client/audit/joint_pair.h"
#include "client/privacy/sampling/bit_source.h"
#include "common/base/matrix.h"
#include "privatemail/mechanism_kind.h"

namespace privatemail::client::audit {

// The attacker's view of one private iteration: with public start, dummies and parameters the
// noise-free iterates of both targets are known.
struct TranscriptStep {
  Matrix one;  // noise-free iterate of the one target
  Matrix other;
  FloatMatrix released = {};
  double noise_stddev = 0;
  double sensitivity = 0;  // that the noise is calibrated to
};

// Log-likelihood ratio of the release, `one` over `other`, up to a term that does not depend on the
// release: the optimal score (Neyman-Pearson).
double LogLikelihoodRatio(const TranscriptStep& step, MechanismTraits::Law law);

// ReleaseIterations (joint_steps.h) or a planted fault.
using ReleaseFn = std::function<absl::StatusOr<std::vector<FloatMatrix>>(
    const JointSetting& setting, const TargetIndependentPart& part, const PrivacyCost& cost,
    int64_t slot, const RowVector& target, BitSource& bits)>;

// The production path of JointScheme::Release without its ledger, on the pairs of joint_pair.h:
// MakeLabelDominatedPair, and for one Gaussian iteration the others too. The attack sees every
// private iteration, as the guarantee covers them all, and scores by likelihood ratio.
//   event | claim with mu, or noise on the input | the score is positive
//         | otherwise                            | the score exceeds the top decile of a pilot
// Each description states which part of the sensitivity the pair moves by and what epsilon that
// leaves to find. Errors: as JointScheme::Release of such a cost.
absl::StatusOr<Subject> AttackJointRelease(const PrivacyCost& cost,
                                           const ReleaseFn& release = &ReleaseIterations);

// The costs of `audit --all`: every mechanism in one iteration, with radius 2 (the poles' distance)
// where it takes one; Gaussian noise over 2 iterations; Laplace noise over 40, where strong
// composition is cheaper at any delta from 1e-7.
std::vector<PrivacyCost> AuditedJointCosts(double epsilon, double delta);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_JOINT_ATTACK_H_
