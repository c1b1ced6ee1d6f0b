// Attacks on a mechanism by itself: one value, the worst pair.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_MECHANISM_ATTACKS_H_
#define PRIVATEMAIL_CLIENT_AUDIT_MECHANISM_ATTACKS_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"
#include "privatemail/bit_source.h"
#include "client/privacy/mechanisms/make_mechanism.h"

namespace privatemail::client::audit {

// How far apart the pair's values are: small, so that a variance that is used as a deviation shows.
inline constexpr double kDistance = .01;

// What the audited mechanism is made of: sensitivity or radius kDistance, a box as wide as that.
// delta: of the Gaussian laws; the others take none.
MechanismParameters AuditParameters(MechanismKind kind, double epsilon, double delta);

// Values 0 and kDistance. Attacks: the value that is nearer; values that no release of the other
// neighbour can have when noise goes through floating point, in single precision as released, in
// double before the rounding to float hides it; and a release on either side of a fork.
Subject AttackMechanism(std::string name, std::shared_ptr<const Mechanism> mechanism,
                        double threshold, std::function<std::unique_ptr<BitSource>()> make_bits);

// A mechanism as MakeMechanism makes it, with secure bits. INVALID_ARGUMENT: see MakeMechanism.
absl::StatusOr<Subject> AttackProductionMechanism(MechanismKind kind, double epsilon, double delta);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_MECHANISM_ATTACKS_H_
