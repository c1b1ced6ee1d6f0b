#include "server/daemon/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

namespace privatemail::server {
namespace {

void EnableOption(int socket, int level, int option) {
  const int on = 1;
  ::setsockopt(socket, level, option, &on, sizeof(on));
}

// Negative on failure; errno says why.
int Listen(const addrinfo& address) {
  constexpr int kKind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  const int socket = ::socket(address.ai_family, kKind, 0);
  if (socket < 0) return socket;
  // Otherwise a recently closed port counts as in use.
  EnableOption(socket, SOL_SOCKET, SO_REUSEADDR);
  // Inherited by connections; avoids Nagle delays.
  EnableOption(socket, IPPROTO_TCP, TCP_NODELAY);
  if (::bind(socket, address.ai_addr, address.ai_addrlen) == 0 &&
      ::listen(socket, SOMAXCONN) == 0) {
    return socket;
  }
  const int error = errno;
  ::close(socket);
  errno = error;
  return -1;
}

int PortOf(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void SetPort(addrinfo* address, int port) {
  const auto in_order = htons(static_cast<uint16_t>(port));
  if (address->ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address->ai_addr)->sin6_port = in_order;
  } else {
    reinterpret_cast<sockaddr_in*>(address->ai_addr)->sin_port = in_order;
  }
}

}  // namespace

absl::StatusOr<ListeningSockets> ListeningSockets::Open(const ListenAddress& address) {
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
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  ListeningSockets opened(address.port);
  for (addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    SetPort(one, opened.port_);
    const int socket = Listen(*one);
    if (socket < 0) return failed(std::strerror(errno));
    opened.sockets_.push_back(socket);
    opened.port_ = PortOf(socket);
  }
  return opened;
}

ListeningSockets::~ListeningSockets() {
  for (const int socket : sockets_) ::close(socket);
}

}  // namespace privatemail::server
