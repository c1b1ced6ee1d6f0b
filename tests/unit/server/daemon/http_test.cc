#include "server/daemon/http.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/testing/matchers.h"
#include "tests/unit/server/daemon/http_client.h"

namespace privatemail::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpServerTest : public ::testing::Test {
 protected:
  HttpServerTest() {
    auto http = server::HttpServer::Start(
        "127.0.0.1:0", {[this] { return ready_; }, [] { return std::string("metric 1\n"); }});
    EXPECT_THAT(http, IsOk());
    http_ = *std::move(http);
  }

  std::string Ask(const std::string& method, const std::string& path) const {
    return Http(http_->address(), method, path);
  }

  bool ready_ = true;
  std::unique_ptr<server::HttpServer> http_;
};

TEST_F(HttpServerTest, UnknownPathOrMethodIsRefused) {
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

TEST_F(HttpServerTest, IdleConnectionsDelayOthersBriefly) {
  std::vector<std::unique_ptr<HttpConnection>> idle;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(std::make_unique<HttpConnection>(http_->address()));
    EXPECT_TRUE(idle.back()->Send(i % 2 == 0 ? "" : "GET /livez HTTP/1.1\r\nHost:"));
  }
  const absl::Time start = absl::Now();
  EXPECT_THAT(Ask("GET", "/livez"), StartsWith("HTTP/1.1 200"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(4));
  for (const auto& connection : idle)
    EXPECT_EQ(connection->Receive().find("200"), std::string::npos);
  EXPECT_LT(absl::Now() - start, absl::Seconds(6));
}

TEST_F(HttpServerTest, SlowRequestIsClosed) {
  const HttpConnection slow(http_->address());
  const absl::Time start = absl::Now();
  bool heard = true;
  for (int i = 0; heard && i < 100; ++i) {
    heard = slow.Send("G");
    absl::SleepFor(absl::Milliseconds(100));  // the pace is what is tested
  }
  EXPECT_FALSE(heard);
  EXPECT_LT(absl::Now() - start, absl::Seconds(4));
}

}  // namespace
}  // namespace privatemail::testing
