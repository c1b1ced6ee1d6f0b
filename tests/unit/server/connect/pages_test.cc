#include "server/connect/pages.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "tests/testing/matchers.h"
#include "tests/unit/server/daemon/http_client.h"

namespace privatemail::testing {
namespace {

using server::HttpServer;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class PagesTest : public ::testing::Test {
 protected:
  std::unique_ptr<HttpServer> Start(bool any_host) {
    auto http =
        HttpServer::Start({.setting = "--http", .address = {"127.0.0.1", 0}},
                          server::ServePages({[this] { return ready_; },
                                              [] { return std::string("metric 1\n"); }, any_host}));
    EXPECT_THAT(http, IsOk());
    return *std::move(http);
  }

  std::string Ask(const std::string& method, const std::string& path) const {
    return Http(http_->address(), method, path);
  }

  bool ready_ = true;
  const std::unique_ptr<HttpServer> http_ = Start(/*any_host=*/true);
};

TEST_F(PagesTest, UnknownPathOrMethodIsRefused) {
  for (const char* path : {"/livez", "/readyz", "/metrics", "/metrics?x=y"}) {
    EXPECT_THAT(Ask("GET", path), StartsWith("HTTP/1.1 200 OK\r\n")) << path;
  }
  for (const char* path : {"/", "/livez/", "/livezz", "/metrics/.."}) {
    EXPECT_THAT(Ask("GET", path), StartsWith("HTTP/1.1 404 Not Found\r\n")) << path;
  }
  for (const char* method : {"POST", "DELETE", "PROPFIND"}) {
    const std::string answer = Ask(method, "/metrics");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n")) << method;
    EXPECT_THAT(answer, HasSubstr("\r\nAllow: GET, HEAD\r\n")) << method;
  }
  EXPECT_THAT(Ask("HEAD", "/readyz"), EndsWith("\r\n\r\n")) << "without a body";
  ready_ = false;
  EXPECT_THAT(Ask("HEAD", "/readyz"), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
}

// A page in a browser on this machine can make a name of its own lead here.
TEST_F(PagesTest, LoopbackServerRefusesForeignHosts) {
  const std::unique_ptr<HttpServer> http = Start(/*any_host=*/false);
  for (const char* host : {"127.0.0.1:9464", "localhost", "[::1]:9464", ""}) {
    EXPECT_THAT(Http(http->address(), "GET", "/metrics", host), HasSubstr("metric 1")) << host;
  }
  for (const char* host : {"evil.example:9464", "localhost.evil.example", "192.0.2.1"}) {
    EXPECT_THAT(Http(http->address(), "GET", "/metrics", host), StartsWith("HTTP/1.1 421 "))
        << host;
  }
}

}  // namespace
}  // namespace privatemail::testing
