#include "server/daemon/http.h"

#include <civetweb.h>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace privatemail::server {
namespace {

// An idle connection holds a thread until the timeout.
constexpr char kThreads[] = "256";
constexpr char kRequestMilliseconds[] = "500";

struct Answer {
  int status = 200;
  std::string body;
};

Answer HandleRequest(const mg_request_info& request, const HttpServer::Pages& pages) {
  const absl::string_view method = request.request_method;
  const absl::string_view path = request.local_uri == nullptr ? "" : request.local_uri;
  const bool known = path == "/livez" || path == "/readyz" || path == "/metrics";
  if (!known) return {404, "there are /livez, /readyz and /metrics\n"};
  if (method != "GET" && method != "HEAD") return {405, "only GET and HEAD\n"};
  if (path == "/livez") return {200, "ok\n"};
  if (path == "/metrics") return {200, pages.metrics()};
  return pages.ready() ? Answer{200, "ok\n"} : Answer{503, "not ready\n"};
}

}  // namespace

int HttpServer::Serve(mg_connection* connection) {
  const auto* http = static_cast<HttpServer*>(mg_get_user_data(mg_get_context(connection)));
  const mg_request_info& request = *mg_get_request_info(connection);
  const Answer answer = HandleRequest(request, http->pages_);
  mg_printf(connection,
            "HTTP/1.1 %d %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            "Content-Length: %zu\r\nCache-Control: no-store\r\n%sConnection: close\r\n\r\n",
            answer.status, mg_get_response_code_text(connection, answer.status), answer.body.size(),
            answer.status == 405 ? "Allow: GET, HEAD\r\n" : "");
  if (absl::string_view(request.request_method) != "HEAD") {
    mg_write(connection, answer.body.data(), answer.body.size());
  }
  return answer.status;  // nonzero: handled
}

void HttpServer::Stop::operator()(mg_context* server) const {
  mg_stop(server);
  mg_exit_library();
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(absl::string_view address,
                                                              Pages pages) {
  PM_ASSIGN_OR_RETURN(HostPort where, ParseIpPort("--http", address));
  // civetweb gives no reason for a failure.
  PM_RETURN_IF_ERROR(CheckCanListen({where}));
  auto http = std::unique_ptr<HttpServer>(new HttpServer(std::move(pages)));
  mg_callbacks callbacks = {};
  callbacks.begin_request = &HttpServer::Serve;
  const std::string ports = where.ToString();
  const char* options[] = {"listening_ports",    ports.c_str(),        "num_threads", kThreads,
                           "request_timeout_ms", kRequestMilliseconds, nullptr};
  mg_init_library(MG_FEATURES_DEFAULT);
  http->server_.reset(mg_start(&callbacks, http.get(), options));
  if (http->server_ == nullptr) mg_exit_library();
  mg_server_port port = {};
  if (http->server_ == nullptr || mg_get_server_ports(http->server_.get(), 1, &port) != 1) {
    return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", ports, " for --http"));
  }
  where.port = port.port;
  http->address_ = where.ToString();
  return http;
}

}  // namespace privatemail::server
