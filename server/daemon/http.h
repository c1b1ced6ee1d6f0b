// HTTP server for Prometheus metrics and container probes.
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

// Serves GET and HEAD without TLS or key. Thread-safe; stops on destruction.
//   /livez    200 while the process runs
//   /readyz   200, or 503 while it drains; 200 also without the store, since searches still work
//   /metrics  Prometheus text
// Other paths are 404, other methods 405, unknown methods 400. Connections without a whole request
// after half a second are closed, so 256 idle ones delay others by half a second, 1000 by two:
// civetweb serves connections in order of arrival and cannot refuse those of one address.
class HttpServer {
 public:
  struct Pages {
    std::function<bool()> ready;
    std::function<std::string()> metrics;
  };

  // INVALID_ARGUMENT: the address is not IP:PORT. FAILED_PRECONDITION: cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(absl::string_view address, Pages pages);
  const std::string& address() const { return address_; }  // with the actual port

 private:
  struct Stop {
    void operator()(mg_context* server) const;
  };

  explicit HttpServer(Pages pages) : pages_(std::move(pages)) {}

  static int Serve(mg_connection* connection);

  const Pages pages_;
  std::string address_;
  std::unique_ptr<mg_context, Stop> server_;  // its threads use pages_
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_DAEMON_HTTP_H_
