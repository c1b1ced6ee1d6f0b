// Attacks on the joint release as a whole, by any mechanism and over any private iterations.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_JOINT_ATTACK_H_
#define PRIVATEMAIL_CLIENT_AUDIT_JOINT_ATTACK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"
#include "client/audit/joint_transcript.h"
#include "privatemail/bit_source.h"

namespace privatemail::client::audit {

// How much a fresh release of the neighbour looks like one of Neighbour::kOne.
using ScoreFn = std::function<absl::StatusOr<double>(Neighbour neighbour, BitSource& bits)>;

// The event: the score is above the threshold.
Attack OnScores(std::string what, ScoreFn score, double threshold, int64_t most_releases);

// The production path of JointScheme::Release without its ledger, at `cost`, on the pairs of
// joint_pair.h: the analytic Gaussian on both, the others on the one where bounds are nearly
// reached. The guarantee covers what every private iteration releases, not the last alone, so that
// is what the attack sees. It scores by likelihood. The event: where the claim has a mu, the nearer
// side; else a score that one in ten of a pilot's releases exceeds. (Noise on the input is scored
// by the side on which the iterate falls.) Each attack says by how much of the sensitivity its pair
// moves on average, and what the noise, made for all of it, leaves to be found.
//
// INVALID_ARGUMENT and FAILED_PRECONDITION: as JointScheme::Release of such a cost.
absl::StatusOr<Subject> AttackJointRelease(const PrivacyCost& cost,
                                           const ReleaseFn& release = &ReleaseIterations);

// What `audit --all` attacks: every mechanism in one iteration, with a radius of the distance
// between poles where it takes one; Gaussian noise over 2, whose mus add up as a root of squares;
// and Laplace noise over 40, for which strong composition pays at any delta from 1e-7.
std::vector<PrivacyCost> AuditedJointCosts(double epsilon, double delta);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_JOINT_ATTACK_H_
