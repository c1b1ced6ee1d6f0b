// Takes connections in.
#ifndef PRIVATEMAIL_SERVER_DAEMON_ACCEPTOR_H_
#define PRIVATEMAIL_SERVER_DAEMON_ACCEPTOR_H_

#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "server/daemon/listening_sockets.h"

namespace privatemail::server {

// gRPC's own listener takes in as many connections as the process may have open files, and none
// ever again once there were too many. This one keeps some back: the daemon itself needs them, for
// its store, its log and whoever watches it.
class Acceptor {
 public:
  // Starts taking in; about `max_connections` at once, since open files are what is counted. Those
  // beyond are closed; `refused` is told of each, the log of one a minute. The process's limit on
  // open files is raised where needed and possible; FAILED_PRECONDITION naming both where it is
  // not. INTERNAL: the system denies a thread or an event.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(
      ListeningSockets sockets, int64_t max_connections,
      std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server,
      std::function<void()> refused);

  // Takes no more in; the port is free again.
  ~Acceptor();

 private:
  Acceptor(ListeningSockets sockets, int64_t max_connections,
           std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server,
           std::function<void()> refused);

  void Run();
  void Accept(int socket);
  void Refused();

  const ListeningSockets sockets_;
  const int64_t max_connections_;
  const std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server_;
  const std::function<void()> refused_;
  std::chrono::steady_clock::time_point warn_again_;
  int stop_ = -1;  // becomes readable when the thread is to end
  std::thread thread_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_ACCEPTOR_H_
