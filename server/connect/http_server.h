// An HTTP server without TLS.
#ifndef PRIVATEMAIL_SERVER_CONNECT_HTTP_SERVER_H_
#define PRIVATEMAIL_SERVER_CONNECT_HTTP_SERVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/host_port.h"

namespace privatemail::server {

class Connection;

// Listens on one address. One thread does all input and output and calls Serve; a connection that
// waits costs memory but no thread. Thread-safe.
//   - A header has at most 16 KiB and takes at most 5 s; a connection without a request is closed
//     after 60 s, and earlier if there are kMaxConnections.
//   - A connection that its client closes, also half, while a request with SetOnCut is served is
//     cut within a tenth of a second.
//   - Answers have at most Connections::kMaxUntakenBytes untaken; no piece waits longer than 60 s.
class HttpServer {
 public:
  static constexpr int kMaxConnections = 1024;

  // Called with each request (connection.h).
  using Serve = std::function<void(std::shared_ptr<Connection>)>;

  struct Options {
    const char* setting = "";  // for messages
    HostPort address;          // an IP address
    // Addresses of 4 or 16 bytes that may connect beside those of this machine; nullopt: all.
    std::optional<std::set<std::string>> peers = std::nullopt;
  };

  // FAILED_PRECONDITION: cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Options options, Serve serve);
  // Waits a moment for the last responses.
  ~HttpServer();

  std::string address() const;  // with the actual port

  // Accepts no connection any more, closes those without a request, and waits until the others are
  // answered, at most until the deadline.
  void Drain(absl::Time deadline);

 private:
  class Listener;
  explicit HttpServer(std::unique_ptr<Listener> listener);

  std::unique_ptr<Listener> listener_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONNECT_HTTP_SERVER_H_
