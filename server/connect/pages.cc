#include "server/connect/pages.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/rpc/host_port.h"
#include "server/connect/connection.h"

namespace privatemail::server {
namespace {

namespace http = boost::beast::http;

bool IsThisMachine(absl::string_view host) {
  absl::string_view name = host.substr(0, host.rfind(':'));
  if (absl::ConsumePrefix(&name, "[")) absl::ConsumeSuffix(&name, "]");
  return host.empty() || IsLoopback(std::string(name));
}

std::pair<int, std::string> AnswerTo(const Connection::Request& request, const Pages& pages) {
  if (!pages.any_host && !IsThisMachine(std::string(request[http::field::host]))) {
    return {421, "the header Host must name this machine by an address or as localhost\n"};
  }
  const std::string path(request.target().substr(0, request.target().find('?')));
  const bool known = path == "/livez" || path == "/readyz" || path == "/metrics";
  if (!known) return {404, "there are /livez, /readyz and /metrics\n"};
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    return {405, "only GET and HEAD\n"};
  }
  if (path == "/metrics") return {200, pages.metrics()};
  if (path == "/livez" || pages.ready()) return {200, "ok\n"};
  return {503, "not ready\n"};
}

}  // namespace

HttpServer::Serve ServePages(Pages pages) {
  return [pages = std::move(pages)](const std::shared_ptr<Connection>& connection) {
    const Connection::Request& request = connection->request();
    const auto [status, body] = AnswerTo(request, pages);
    connection->Write(
        absl::StrCat(connection->Head(status), status == 405 ? "Allow: GET, HEAD\r\n" : "",
                     "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: ",
                     body.size(), "\r\n\r\n"),
        {grpc::Slice(request.method() == http::verb::head ? "" : body)},
        [connection, keep_alive = request.keep_alive()] { connection->Finish(keep_alive); });
  };
}

}  // namespace privatemail::server
