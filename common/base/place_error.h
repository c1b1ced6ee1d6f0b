// Errors of the places where things are kept.
#ifndef PRIVATEMAIL_COMMON_BASE_PLACE_ERROR_H_
#define PRIVATEMAIL_COMMON_BASE_PLACE_ERROR_H_

#include "absl/status/status.h"

namespace privatemail {

// Marks an error whose message may name files, databases and hosts: it is for whoever operates
// them. OK stays OK.
absl::Status PlaceError(absl::Status status);

bool IsPlaceError(const absl::Status& status);

// The same error for those who only use the place: its code, and that the operator can read more.
absl::Status WithoutPlace(const absl::Status& status);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_PLACE_ERROR_H_
