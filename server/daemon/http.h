// What monitors and probes read, over HTTP.
#ifndef PRIVATEMAIL_SERVER_DAEMON_HTTP_H_
#define PRIVATEMAIL_SERVER_DAEMON_HTTP_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/rpc/host_port.h"

struct mg_connection;
struct mg_context;

namespace privatemail::server {

// Where monitors are listened for. INVALID_ARGUMENT: not IP:PORT.
absl::StatusOr<HostPort> ParseHttpAddress(absl::string_view address);

// Answers GET, and HEAD with the same without a body, without TLS and without a key: /livez (200
// while the process runs), /readyz (200, or 503 while it drains; while the store is away, too, 200:
// searches are answered) and /metrics. Other paths are 404, other methods 405, or 400 where HTTP
// knows no such method. Whoever has not sent a request within a second is hung up on, so that a
// hundred who never do hold up the others for two seconds at most. Thread-safe; stops on
// destruction.
class HttpServer {
 public:
  struct Pages {
    std::function<bool()> ready;
    std::function<std::string()> metrics;
  };

  // INVALID_ARGUMENT: the address is not IP:PORT. FAILED_PRECONDITION: cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(absl::string_view address, Pages pages);
  const std::string& address() const { return address_; }  // with the port that was picked

 private:
  struct Stop {
    void operator()(mg_context* server) const;
  };

  explicit HttpServer(Pages pages) : pages_(std::move(pages)) {}

  static int Serve(mg_connection* connection);

  const Pages pages_;
  std::string address_;
  std::unique_ptr<mg_context, Stop> server_;  // its threads end before the pages go
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_HTTP_H_
