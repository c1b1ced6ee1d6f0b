// What a release of slots hides, in the same words whichever scheme makes it: guarantees compose,
// and a ledger adds up, only what is said alike. Not installed.
#ifndef PRIVATEMAIL_CLIENT_SCHEMES_RELEASE_NEIGHBOURS_H_
#define PRIVATEMAIL_CLIENT_SCHEMES_RELEASE_NEIGHBOURS_H_

#include <string>

#include "absl/status/status.h"
#include "privatemail/mechanism_kind.h"

namespace privatemail::client {

// Any other target, feature and class; or, where the mechanism protects a ball, features alone
// within the radius, which is told exactly, so that a ledger does not take two radii for one kind
// of neighbours.
std::string NeighboursOfRelease(const MechanismTraits& traits, double radius);

// NaN: none is given. INVALID_ARGUMENT: one that is missing, of no use to the mechanism, or not in
// (0, 2]: features lie on the unit sphere, and no two of them are more than 2 apart.
absl::Status CheckRadius(double radius, const MechanismTraits& traits);

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_SCHEMES_RELEASE_NEIGHBOURS_H_
