// HTTP server of a page for the one user of this machine who started it.
#ifndef PRIVATEMAIL_CLIENT_PAGE_LOCAL_SERVER_H_
#define PRIVATEMAIL_CLIENT_PAGE_LOCAL_SERVER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct mg_connection;
struct mg_context;

namespace privatemail::client {

struct PageRequest {
  std::string method;                          // GET or POST
  std::string path;                            // "api/ask"; empty: the page itself
  std::map<std::string, std::string> options;  // of the query string
  std::string body;
};

struct PageResponse {
  int status = 200;
  std::string type = "application/json";
  std::string body;
};

// Held by the client; requests and answers are private. Thread-safe; stops on destruction.
//
// | against                                  | measure                                            |
// |------------------------------------------|----------------------------------------------------|
// | other users of this machine, containers  | a token of 256 bits, exchanged once for a cookie   |
// | pages of other origins                   | SameSite=Strict; POST needs this Origin; requests  |
// |                                          | that a browser marks as cross-origin are refused   |
// | DNS rebinding                            | Host must be 127.0.0.1 and the port                |
// | services on other ports of 127.0.0.1,    | the cookie is bound to a folder with a random name |
// | which share cookies                      |                                                    |
// | leaks through the page's own content     | Content-Security-Policy, nosniff, no referrer, no  |
// |                                          | cache                                              |
class LocalServer {
 public:
  using Handler = std::function<PageResponse(const PageRequest&)>;

  static constexpr size_t kMaxBody = size_t{64} << 20;

  // handler: called from several threads, only for requests that passed every check.
  // published_port: 0 listens on a free port of 127.0.0.1. Another one is listened on at every IPv4
  // address, for a container whose port is published as the same port of 127.0.0.1.
  // UNAVAILABLE: cannot listen, or no random bits.
  static absl::StatusOr<std::unique_ptr<LocalServer>> Start(Handler handler,
                                                            uint16_t published_port = 0);

  const std::string& origin() const { return origin_; }  // "http://127.0.0.1:PORT"
  // The address that opens the page once. Private: never in a process list or a page, and in no log
  // or output but a container's and a notebook's.
  std::string EntryAddress() const { return origin_ + "/open?token=" + token_; }

 private:
  struct Stop {
    void operator()(mg_context* server) const;
  };

  explicit LocalServer(Handler handler) : handler_(std::move(handler)) {}

  static int Serve(mg_connection* connection);
  PageResponse Respond(mg_connection* connection, std::string* cookie);
  PageResponse Open(absl::string_view token, std::string* cookie);
  bool HasCookie(absl::string_view header) const;

  const Handler handler_;
  std::string origin_;
  std::string token_;
  std::string cookie_;  // "privatemail=SECRET"
  std::string folder_;  // "/RANDOM/"
  std::atomic<bool> opened_ = false;
  std::unique_ptr<mg_context, Stop> server_;  // its threads use all of the above
};

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_PAGE_LOCAL_SERVER_H_
