// Attacks on a single mechanism: one value, the worst-case pair.
#ifndef PRIVATEMAIL_CLIENT_AUDIT_MECHANISM_ATTACKS_H_
#define PRIVATEMAIL_CLIENT_AUDIT_MECHANISM_ATTACKS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"
#include "client/privacy/mechanisms/make_mechanism.h"

namespace privatemail::client::audit {

// Distance of the pair's values: small, to detect a variance used as a deviation.
inline constexpr double kDistance = .01;

// Parameters of the audited mechanism: sensitivity, radius and box are kDistance. delta: used by
// the Gaussian laws only.
MechanismParameters AuditParameters(MechanismKind kind, double epsilon, double delta);

// Values 0 and kDistance. Events:
// - the release is above the threshold;
// - it is above 3.5 standard deviations, where noise that was cut off would show;
// - a value that floating-point noise cannot give for the other neighbour, as released in float and
//   in double before rounding;
// - parent and child of a fork differ by the value.
Subject AttackMechanism(std::string name, std::shared_ptr<const Mechanism> mechanism,
                        double threshold, MakeBits make_bits);

// MakeMechanism's mechanism with secure bits. INVALID_ARGUMENT: see MakeMechanism.
absl::StatusOr<Subject> AttackProductionMechanism(MechanismKind kind, double epsilon, double delta);

}  // namespace privatemail::client::audit

#endif  // PRIVATEMAIL_CLIENT_AUDIT_MECHANISM_ATTACKS_H_
