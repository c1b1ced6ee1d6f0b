// Listening sockets of one address.
#ifndef PRIVATEMAIL_SERVER_DAEMON_LISTENING_SOCKETS_H_
#define PRIVATEMAIL_SERVER_DAEMON_LISTENING_SOCKETS_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/options.h"

namespace privatemail::server {

// One socket for each IP address of the host name, all on the same port. Closed on destruction.
class ListeningSockets {
 public:
  // Blocks while the host name is resolved. FAILED_PRECONDITION: "cannot listen on 127.0.0.1:50051:
  // Address already in use".
  static absl::StatusOr<ListeningSockets> Open(const ListenAddress& address);

  ListeningSockets(ListeningSockets&& other) noexcept
      : sockets_(std::exchange(other.sockets_, {})), port_(other.port_) {}
  ListeningSockets& operator=(ListeningSockets&&) = delete;
  ~ListeningSockets();

  const std::vector<int>& sockets() const { return sockets_; }
  int port() const { return port_; }  // the actual one if port 0 was given

 private:
  explicit ListeningSockets(int port) : port_(port) {}

  std::vector<int> sockets_;
  int port_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_LISTENING_SOCKETS_H_
