#include "server/daemon/listen_check.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace privatemail::server {

absl::Status CheckCanListen(absl::Span<const ListenAddress> addresses) {
  std::vector<int> sockets;
  const auto close_all = absl::MakeCleanup([&sockets] {
    for (const int socket : sockets) ::close(socket);
  });
  for (const ListenAddress& address : addresses) {
    const auto failed = [&](const char* reason) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot listen on ", address.ToString(), ": ", reason));
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
      sockets.push_back(socket);
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

}  // namespace privatemail::server
