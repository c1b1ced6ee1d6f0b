#include "server/daemon/probe.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"

namespace privatemail {
namespace {

// 0, or the system's error number for binding this address.
int BindError(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, 0);
  if (socket < 0) return errno;
  const int on = 1;
  // As gRPC does; otherwise a port that was just closed would look taken.
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  int error = 0;
  if (::bind(socket, address.ai_addr, address.ai_addrlen) != 0 || ::listen(socket, 1) != 0) {
    error = errno;
  }
  ::close(socket);
  return error;
}

}  // namespace

absl::Status CheckCanListen(const ListenAddress& address) {
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
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    if (const int error = BindError(*one); error != 0) return failed(std::strerror(error));
  }
  return absl::OkStatus();
}

}  // namespace privatemail
