#include "client/transport/proxy.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/printable.h"
#include "common/rpc/host_port.h"

namespace privatemail::client {
namespace {

// The hosts of HOST:PORT, "dns:///HOST:PORT" or "ipv4:ADDRESS:PORT,ADDRESS:PORT".
std::vector<std::string> HostsOf(absl::string_view server) {
  for (const absl::string_view scheme : {"dns:", "ipv4:", "ipv6:"}) {
    if (absl::ConsumePrefix(&server, scheme)) break;
  }
  server.remove_prefix(server.rfind('/') + 1);  // an authority, such as that of a name server
  std::vector<std::string> hosts;
  for (const absl::string_view address : absl::StrSplit(server, ',')) {
    const auto parsed = ParseHostPort("server", address);
    hosts.push_back(parsed.ok() ? parsed->host : std::string(address));
  }
  return hosts;
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool IsOnThisMachine(const std::string& server) {
  const std::vector<std::string> hosts = HostsOf(server);
  return std::all_of(hosts.begin(), hosts.end(), IsLoopback);
}

std::string DescribeProxy(const std::string& server) {
  if (IsOnThisMachine(server)) return "";
  std::string excepted = Variable("no_grpc_proxy");
  if (excepted.empty()) excepted = Variable("no_proxy");
  for (const absl::string_view suffix : absl::StrSplit(excepted, ',', absl::SkipWhitespace())) {
    const std::string host = HostsOf(server).front();
    if (absl::EndsWithIgnoreCase(host, absl::StripAsciiWhitespace(suffix))) return "";
  }
  for (const char* const name : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    const std::string value = Variable(name);
    absl::string_view proxy = value;
    if (proxy.empty()) continue;
    if (!absl::ConsumePrefix(&proxy, "http://")) return "";  // gRPC knows no other kind
    proxy.remove_prefix(proxy.rfind('@') + 1);               // user and password
    return absl::StrCat(" through the proxy ", Printable(proxy), " of ", name);
  }
  return "";
}

}  // namespace privatemail::client
