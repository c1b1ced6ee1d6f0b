// What monitors and probes read, over HTTP.
#ifndef PRIVATEMAIL_SERVER_DAEMON_HTTP_H_
#define PRIVATEMAIL_SERVER_DAEMON_HTTP_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

class CivetServer;
class CivetHandler;

namespace privatemail {

// Answers GET without TLS and without a key: /livez (200 while the process runs), /readyz (200, or
// 503 while it drains) and /metrics. Thread-safe; stops on destruction.
class HttpServer {
 public:
  struct Pages {
    std::function<bool()> ready;
    std::function<std::string()> metrics;
  };

  // INVALID_ARGUMENT: the address is not IP:PORT. FAILED_PRECONDITION: cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(absl::string_view address, Pages pages);
  ~HttpServer();

  const std::string& address() const { return address_; }  // with the port that was picked

 private:
  HttpServer();

  std::string address_;
  std::vector<std::unique_ptr<CivetHandler>> handlers_;  // outlive the server
  std::unique_ptr<CivetServer> server_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_DAEMON_HTTP_H_
