// The sockets of an address that is listened on.
#ifndef PRIVATEMAIL_SERVER_DAEMON_LISTENING_SOCKETS_H_
#define PRIVATEMAIL_SERVER_DAEMON_LISTENING_SOCKETS_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/options.h"

namespace privatemail::server {

// One for each address that the host's name stands for, all with the same port, which no other
// process shares. Closed on destruction.
class ListeningSockets {
 public:
  // FAILED_PRECONDITION with the system's reason: "cannot listen on 127.0.0.1:50051: Address
  // already in use". Blocks while a host name is resolved.
  static absl::StatusOr<ListeningSockets> Open(const ListenAddress& address);

  ListeningSockets(ListeningSockets&& other) noexcept
      : sockets_(std::exchange(other.sockets_, {})), port_(other.port_) {}
  ListeningSockets& operator=(ListeningSockets&&) = delete;
  ~ListeningSockets();

  const std::vector<int>& sockets() const { return sockets_; }
  int port() const { return port_; }  // that was picked, when 0 was asked for

 private:
  explicit ListeningSockets(int port) : port_(port) {}

  std::vector<int> sockets_;
  int port_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_LISTENING_SOCKETS_H_
