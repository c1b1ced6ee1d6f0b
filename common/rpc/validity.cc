#include "common/rpc/validity.h"

#include <openssl/asn1.h>
#include <openssl/err.h>

#include <algorithm>
#include <ctime>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

absl::StatusOr<absl::Time> TimeOf(absl::string_view what, const ASN1_TIME* time) {
  std::tm broken_down = {};
  if (ASN1_TIME_to_tm(time, &broken_down) == 1) {
    return absl::FromTM(broken_down, absl::UTCTimeZone());
  }
  ERR_clear_error();
  return absl::FailedPreconditionError(
      absl::StrCat(what, " holds a damaged certificate: one of its dates cannot be read"));
}

std::string Text(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

}  // namespace

absl::Status Narrow(absl::string_view what, const X509* certificate, Validity* validity) {
  PM_ASSIGN_OR_RETURN(const absl::Time from, TimeOf(what, X509_get0_notBefore(certificate)));
  PM_ASSIGN_OR_RETURN(const absl::Time until, TimeOf(what, X509_get0_notAfter(certificate)));
  validity->not_before = std::max(validity->not_before, from);
  validity->not_after = std::min(validity->not_after, until);
  return absl::OkStatus();
}

std::string DescribeInvalidity(absl::string_view what, const Validity& validity, absl::Time now,
                               absl::string_view remedy) {
  const bool early = now < validity.not_before;
  return absl::StrCat(what, early ? " is not valid before " : " expired at ",
                      Text(early ? validity.not_before : validity.not_after),
                      ", and by this machine's clock it is ", Text(now),
                      ": set the clock if it is wrong, otherwise ", remedy);
}

}  // namespace privatemail
