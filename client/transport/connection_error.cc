#include "client/transport/connection_error.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/transport/credentials.h"
#include "client/transport/proxy.h"
#include "common/base/field_error.h"

namespace privatemail::client {
namespace {

// The message of the pinned certificate's verifier within gRPC's error; empty if there is none.
std::string FingerprintMismatchIn(absl::string_view reason) {
  constexpr size_t kHexDigits = 64;
  const size_t start = reason.find(kFingerprintMismatch);
  const size_t trusted = reason.find(kTrustNames, start);
  if (start == reason.npos || trusted == reason.npos) return "";
  return std::string(reason.substr(start, trusted + kTrustNames.size() + kHexDigits - start));
}

// Whether the server is a host name and not an IP address.
bool NamesHost(absl::string_view server) {
  return !absl::StartsWith(server, "[") &&
         std::any_of(server.begin(), server.end(), [](char c) { return absl::ascii_isalpha(c); });
}

// "there is no host named x": of "DNS resolution failed for x:1: ...: Domain name not found". The
// host may be the proxy. Empty for other reasons.
std::string LookupFailure(absl::string_view reason) {
  const bool is_lookup = absl::ConsumePrefix(&reason, "DNS resolution failed for ");
  const size_t colon = reason.find(": ");
  if (!is_lookup || colon == reason.npos) return "";  // a server may send anything
  const absl::string_view address = reason.substr(0, colon);
  const absl::string_view host = address.substr(0, address.rfind(':'));
  const absl::string_view cause = reason.substr(reason.rfind(": ") + 2);
  if (host == "*") return "* is every address of a server: give one of them, or its name";
  if (cause == "Domain name not found") {
    return absl::StrCat("there is no host named ", host,
                        ": check its spelling, and whether only another network knows it");
  }
  return absl::StrCat("the address of host ", host, " was not found (", cause,
                      "): check this machine's network and name servers");
}

// A remedy for a reason of gRPC's that is known; otherwise the reason.
std::string Remedy(const ConnectionOptions& options, absl::string_view reason) {
  const std::string lower = absl::AsciiStrToLower(reason);
  const auto says = [&](absl::string_view part) { return absl::StrContains(lower, part); };
  if (std::string mismatch = FingerprintMismatchIn(reason); !mismatch.empty()) {
    return mismatch;
  }
  if (std::string failure = LookupFailure(reason); !failure.empty()) return failure;
  if (says("certificate verify failed")) {
    const std::string dates = DescribeAuthorityDates(options);
    if (!dates.empty()) return dates;
    return absl::StrCat(
        "its certificate is not trusted: give the fingerprint that privatemaild printed (--trust, "
        "PRIVATEMAIL_TRUST) or its authority's certificate (--ca); or the server does not "
        "send the certificates of intermediate authorities, which its tls_cert must hold after its "
        "own; or it is not valid at this time: set this machine's clock (",
        absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::Now(), absl::UTCTimeZone()),
        ") if it is wrong, or have the certificate renewed");
  }
  if (says("connection refused") && !DescribeProxy(options.server).empty()) {
    return "connection refused: is the proxy right? no_proxy names servers to reach without it";
  }
  if (says("connection refused")) {
    return absl::StrCat("connection refused: is privatemaild running?",
                        NamesHost(options.server)
                            ? " (A name may have several addresses: give the right one.)"
                            : "");
  }
  if (says("is not in peer certificate")) {
    return absl::StrCat("its certificate is for other names (", reason,
                        "): connect to one that it names, or trust its fingerprint");
  }
  if (says("missing selected alpn")) {
    return "it speaks TLS but not HTTP/2: is it privatemaild, or a proxy that passes HTTP/2 to it?";
  }
  if (says("wrong version number")) return "it does not speak TLS: does it run without?";
  const bool hung_up = says("socket closed") || says("connection reset") || says("broken pipe");
  if (hung_up && options.insecure) {
    return "it closed the connection: it probably speaks TLS, so trust its fingerprint or "
           "authority "
           "instead of connecting without TLS";
  }
  if (options.certificate_file.empty() && (hung_up || says("certificate required"))) {
    return absl::StrCat("it closed the connection (", reason,
                        "): it was stopped, or requires a client certificate");
  }
  return std::string(reason);
}

}  // namespace

absl::Status ExplainConnectionError(const ConnectionOptions& options, const absl::Status& status) {
  if (status.code() == absl::StatusCode::kUnavailable) {
    return absl::UnavailableError(absl::StrCat("server ", options.server, " cannot be reached",
                                               DescribeProxy(options.server), ": ",
                                               Remedy(options, status.message())));
  }
  if (status.code() == absl::StatusCode::kUnauthenticated && options.key_file.empty() &&
      absl::StrContains(status.message(), "a key is needed")) {
    return FieldError(absl::StatusCode::kUnauthenticated, "key_file",
                      "given to this server, a file such as admin.key in the daemon's data folder",
                      "absent");
  }
  // Cancelled by the server: cancellations of the client return their own status.
  if (status.code() == absl::StatusCode::kCancelled) {
    return absl::UnavailableError(
        absl::StrCat("server ", options.server, " ended the call: it is probably being stopped"));
  }
  // gRPC's own message, before the bytes are received.
  if (absl::StrContains(status.message(), "eceived message larger than max")) {
    return FieldError(status.code(), "max_memory",
                      absl::StrCat("larger for this answer (", status.message(), ")"),
                      absl::StrCat(options.max_memory));
  }
  if (status.code() == absl::StatusCode::kDeadlineExceeded) {
    return absl::DeadlineExceededError(
        absl::StrCat("server ", options.server, " did not answer within ",
                     absl::FormatDuration(options.deadline), DescribeProxy(options.server)));
  }
  return status;
}

}  // namespace privatemail::client
