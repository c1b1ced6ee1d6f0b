#include "common/rpc/host_port.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace privatemail {

std::string HostPort::ToString() const {
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:", port)
                                      : absl::StrCat(host, ":", port);
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view flag, absl::string_view text) {
  HostPort address;
  const size_t colon = text.rfind(':');
  absl::string_view host = colon == absl::string_view::npos ? "" : text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  // Without brackets, the last colon of an IPv6 address would be taken for the port's.
  const bool usable = !host.empty() && (bracketed || host.find_first_of(":[]") == host.npos);
  if (!usable || !absl::SimpleAtoi(text.substr(colon + 1), &address.port) || address.port < 0 ||
      address.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " must be HOST:PORT with a port from 0 to 65535, but is '", text, "'"));
  }
  address.host = std::string(host);
  return address;
}

}  // namespace privatemail
