#include "common/rpc/host_port.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/descriptor.h"
#include "common/base/status_macros.h"

namespace privatemail {
namespace {

// Returns the 4 or 16 bytes of an IP address in network byte order, or nothing if it is none.
std::string ParseIpAddress(const std::string& text) {
  char bytes[sizeof(in6_addr)];
  if (inet_pton(AF_INET, text.c_str(), bytes) == 1) return std::string(bytes, sizeof(in_addr));
  if (inet_pton(AF_INET6, text.c_str(), bytes) == 1) return std::string(bytes, sizeof(bytes));
  return "";
}

}  // namespace

bool IsLoopback(const std::string& host) {
  if (host == "localhost") return true;  // reserved for loopback by RFC 6761
  const std::string ip = ParseIpAddress(host);
  if (ip.size() == sizeof(in_addr)) return ip[0] == 127;  // 127.0.0.0/8: RFC 1122
  return ip == std::string(15, '\0') + '\1';              // ::1
}

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

absl::StatusOr<HostPort> ParseIpPort(absl::string_view flag, absl::string_view text) {
  PM_ASSIGN_OR_RETURN(HostPort address, ParseHostPort(flag, text));
  if (!ParseIpAddress(address.host).empty()) return address;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " must name an IP address, but is '", text, "'"));
}

absl::StatusOr<std::set<std::string>> ParseIpAddresses(absl::string_view flag,
                                                       absl::string_view text) {
  std::set<std::string> addresses;
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::string address(absl::StripAsciiWhitespace(part));
    const std::string ip = ParseIpAddress(address);
    if (ip.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          flag, " must be IP addresses, separated by commas, but has '", address, "'"));
    }
    addresses.emplace(absl::StripPrefix(ip, std::string(10, '\0') + "\xff\xff"));  // mapped IPv4
  }
  return addresses;
}

absl::Status CheckCanListen(absl::Span<const FlaggedAddress> addresses) {
  std::vector<Descriptor> sockets;
  for (const auto& [flag, address] : addresses) {
    const auto failed = [&flag = flag, &address = address](const char* reason) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot listen on ", address.ToString(), ": ", reason, "; ", flag,
                       " takes another address, whose port 0 is a free one"));
    };
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    addrinfo* found = nullptr;
    const int failure =
        ::getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
    if (failure != 0) return failed(::gai_strerror(failure));
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> ips(found, &::freeaddrinfo);
    for (const addrinfo* ip = ips.get(); ip != nullptr; ip = ip->ai_next) {
      const int socket = ::socket(ip->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (socket < 0) return failed(std::strerror(errno));
      sockets.emplace_back(socket);
      // Otherwise a recently closed port counts as in use.
      const int on = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      if (::bind(socket, ip->ai_addr, ip->ai_addrlen) != 0 || ::listen(socket, 1) != 0) {
        return failed(std::strerror(errno));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace privatemail
