// The period in which certificates are valid.
#ifndef PRIVATEMAIL_COMMON_RPC_VALIDITY_H_
#define PRIVATEMAIL_COMMON_RPC_VALIDITY_H_

#include <openssl/x509.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace privatemail {

struct Validity {
  absl::Time not_before = absl::InfinitePast();
  absl::Time not_after = absl::InfiniteFuture();

  bool Holds(absl::Time time) const { return not_before <= time && time <= not_after; }
};

// Intersects *validity with that of a certificate. FAILED_PRECONDITION naming `what`: one of its
// dates cannot be read.
absl::Status Narrow(absl::string_view what, const X509* certificate, Validity* validity);

// "WHAT is not valid before T (expired at T), and by this machine's clock it is NOW: set the clock
// if it is wrong, otherwise REMEDY". Requires !validity.Holds(now).
std::string DescribeInvalidity(absl::string_view what, const Validity& validity, absl::Time now,
                               absl::string_view remedy);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_RPC_VALIDITY_H_
