// Listener with a limit on connections.
#ifndef PRIVATEMAIL_SERVER_DAEMON_ACCEPTOR_H_
#define PRIVATEMAIL_SERVER_DAEMON_ACCEPTOR_H_

#include <grpcpp/server_builder.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/access/connections.h"
#include "server/daemon/listening_sockets.h"

namespace privatemail::server {

// FAILED_PRECONDITION naming max_connections and the limit: the process may not have as many open
// files as these connections and the daemon itself need. Changes nothing.
absl::Status CheckOpenFiles(int64_t max_connections);

// Accepts connections for a gRPC server and closes those beyond the limits. gRPC's own listener
// accepts until the process has no files left and then stops for good; this one reserves files for
// store, logs and monitors.
class Acceptor {
 public:
  using Listeners = std::vector<std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>>;

  // Starts a thread that accepts connections.
  // - max_connections: the limit of `connections`; without it as many are accepted, about (open
  //   files are counted).
  // - listeners: of the gRPC server; one for each slot of `connections`, or one if that is null.
  // - connections: null if there are no keys; otherwise must outlive the acceptor.
  // - on_refused: called for each connection that is refused or ended; at most one a minute is
  //   logged.
  // - Raises the process's limit of open files if necessary.
  // - Errors: those of CheckOpenFiles. INTERNAL: the system denies a thread or an event.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Start(ListeningSockets sockets,
                                                         int64_t max_connections,
                                                         Listeners listeners,
                                                         Connections* connections,
                                                         std::function<void()> on_refused);

  // Stops accepting and closes the listening sockets.
  ~Acceptor();

 private:
  Acceptor(ListeningSockets sockets, int64_t max_connections, Listeners listeners,
           Connections* connections, std::function<void()> on_refused);

  // An accepted connection, not yet gRPC's.
  struct Accepted {
    int socket = -1;
    int listening = -1;
    sockaddr_storage peer = {};
  };

  void Run();
  void Accept(int socket);
  // Hands it to gRPC or closes it. False: it must wait for a slot.
  bool Admit(const Accepted& accepted);
  void Wait(const Accepted& accepted);
  void AdmitWaiting();
  void EndExcessive();
  void OnRefused(absl::string_view why);

  const ListeningSockets sockets_;
  const int64_t max_connections_;
  const Listeners listeners_;
  Connections* const connections_;
  const std::function<void()> on_refused_;
  // Connections of proxies that wait for a slot: callers of a proxy would see a refusal.
  std::deque<Accepted> waiting_;
  std::chrono::steady_clock::time_point looked_at_;  // the last EndExcessive
  std::chrono::steady_clock::time_point next_warning_;
  int stop_ = -1;  // eventfd that stops the thread
  std::thread thread_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_ACCEPTOR_H_
