// Pages for Prometheus and for the probes of containers.
#ifndef PRIVATEMAIL_SERVER_CONNECT_PAGES_H_
#define PRIVATEMAIL_SERVER_CONNECT_PAGES_H_

#include <functional>
#include <string>

#include "server/connect/http_server.h"

namespace privatemail::server {

struct Pages {
  std::function<bool()> ready;
  std::function<std::string()> metrics;
  // Whether the header Host may be any. Otherwise it must name this machine, so that no page in a
  // browser here can read metrics by a name of its own that leads here.
  bool any_host = false;
};

// Answers GET and HEAD without a key.
//   /livez    200 while the process runs
//   /readyz   200 if `ready`, otherwise 503
//   /metrics  Prometheus text
// Other paths are 404, other methods 405, other hosts 421.
HttpServer::Serve ServePages(Pages pages);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONNECT_PAGES_H_
