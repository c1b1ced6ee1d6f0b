// When something is to end, as a user says it.
#ifndef PRIVATEMAIL_CLIENT_CLI_VALUES_H_
#define PRIVATEMAIL_CLIENT_CLI_VALUES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace privatemail::client::cli {

// "30d", "12h" or "90m" from `now` on; "2027-01-31", which begins at midnight UTC; or
// "2027-01-31T12:00:00Z" (RFC 3339). INVALID_ARGUMENT naming `flag`: none of these, not after
// `now`, or more than a hundred years away.
absl::StatusOr<absl::Time> ParseExpiry(absl::string_view flag, absl::string_view text,
                                       absl::Time now);

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_VALUES_H_
