#include "server/daemon/http.h"

#include <CivetServer.h>
#include <arpa/inet.h>
#include <netinet/in.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/host_port.h"
#include "server/daemon/listening_sockets.h"
#include "server/daemon/options.h"

namespace privatemail {
namespace {

struct Page {
  int status = 200;
  std::string body;
};

class Handler final : public CivetHandler {
 public:
  explicit Handler(std::function<Page()> page) : page_(std::move(page)) {}

  bool handleGet(CivetServer* /*server*/, mg_connection* connection) override {
    const Page page = page_();
    mg_printf(connection,
              "HTTP/1.1 %d %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
              "Content-Length: %zu\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
              page.status, page.status == 200 ? "OK" : "Service Unavailable", page.body.size());
    mg_write(connection, page.body.data(), page.body.size());
    return true;
  }

 private:
  std::function<Page()> page_;
};

bool IsIp(const std::string& host) {
  in6_addr any;
  return ::inet_pton(AF_INET, host.c_str(), &any) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

}  // namespace

HttpServer::HttpServer() = default;

// Stops its threads before the handlers go.
HttpServer::~HttpServer() { server_.reset(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(absl::string_view address,
                                                              Pages pages) {
  ListenAddress where;
  PM_ASSIGN_OR_RETURN(static_cast<HostPort&>(where), ParseHostPort("--http", address));
  if (!IsIp(where.host)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--http must name an IP address, but is '", address, "'"));
  }
  // The library does not say why it cannot.
  PM_RETURN_IF_ERROR(ListeningSockets::Open(where).status());
  auto http = std::unique_ptr<HttpServer>(new HttpServer);
  try {
    http->server_ = std::make_unique<CivetServer>(std::vector<std::string>{
        "listening_ports", where.ToString(), "num_threads", "4", "request_timeout_ms", "5000"});
  } catch (const CivetException& error) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen on ", where.ToString(), " for --http: ", error.what()));
  }
  where.port = http->server_->getListeningPorts().at(0);
  http->address_ = where.ToString();
  const auto add = [&](const char* path, std::function<Page()> page) {
    http->handlers_.push_back(std::make_unique<Handler>(std::move(page)));
    http->server_->addHandler(path, *http->handlers_.back());
  };
  // "$" ends a path, or everything below it would be answered, too.
  add("/livez$", [] { return Page{200, "ok\n"}; });
  add("/readyz$", [ready = std::move(pages.ready)] {
    return ready() ? Page{200, "ok\n"} : Page{503, "draining\n"};
  });
  add("/metrics$", [metrics = std::move(pages.metrics)] { return Page{200, metrics()}; });
  return http;
}

}  // namespace privatemail
