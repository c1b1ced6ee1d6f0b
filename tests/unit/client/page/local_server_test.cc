#include "client/page/local_server.h"

#include <gtest/gtest-spi.h>

#include <regex>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"
#include "tests/unit/server/daemon/http_client.h"

namespace privatemail::client {
namespace {

using ::privatemail::testing::HttpConnection;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Found(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "";
}

class LocalServerTest : public ::testing::Test {
 protected:
  LocalServerTest() { Start(0); }

  void Start(uint16_t published_port) {
    server_.reset();
    auto server = LocalServer::Start(
        [this](const PageRequest& request) {
          ++handled_;
          return PageResponse{
              200, "text/plain",
              absl::StrCat(request.method, " '", request.path, "' ",
                           request.options.count("a") ? request.options.at("a") : "", " ",
                           request.body)};
        },
        published_port);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    host_ = server_->origin().substr(7);
    token_ = server_->EntryAddress().substr(server_->origin().size());
  }

  // headers: lines that end with "\r\n".
  std::string Send(const std::string& request_line, const std::string& headers,
                   const std::string& body = "", const std::string& address = "") const {
    const HttpConnection connection(address.empty() ? host_ : address);
    EXPECT_TRUE(
        connection.Send(absl::StrCat(request_line, " HTTP/1.1\r\n", headers, "\r\n", body)));
    return connection.Receive();
  }

  int CodeOf(const std::string& request_line, const std::string& headers,
             const std::string& body = "", const std::string& address = "") const {
    return std::stoi(Found(Send(request_line, headers, body, address), "^HTTP/1.1 (\\d{3}) "));
  }

  // Exchanges the token.
  void Open() {
    const std::string answer = Send("GET " + token_, Host());
    ASSERT_THAT(answer, StartsWith("HTTP/1.1 200 "));
    cookie_ = Found(answer,
                    "Set-Cookie: (privatemail=[0-9a-f]{64}); Path=/[0-9a-f]{32}/; "
                    "HttpOnly; SameSite=Strict\r\n");
    folder_ = Found(answer, "url=(/[0-9a-f]{32}/)");
    ASSERT_NE(cookie_, "") << answer;
    ASSERT_NE(folder_, "") << answer;
  }

  std::string Host() const { return absl::StrCat("Host: ", host_, "\r\n"); }
  std::string Good() const { return absl::StrCat(Host(), "Cookie: x=y; ", cookie_, "\r\n"); }
  std::string Origin() const { return absl::StrCat("Origin: ", server_->origin(), "\r\n"); }

  int handled_ = 0;
  std::unique_ptr<LocalServer> server_;
  std::string host_, token_, cookie_, folder_;
};

TEST_F(LocalServerTest, TokenIsExchangedOnceForACookie) {
  EXPECT_EQ(CodeOf("GET /open?token=" + std::string(64, '0'), Host()), 403);
  EXPECT_EQ(CodeOf("GET /open", Host()), 403);
  Open();
  EXPECT_THAT(Send("GET " + token_, Host()),
              ::testing::AllOf(StartsWith("HTTP/1.1 403 "), Not(HasSubstr("Set-Cookie"))));
  EXPECT_THAT(Send("GET " + folder_ + "api/x?a=1%202&b", Good()), HasSubstr("GET 'api/x' 1 2"));
  EXPECT_THAT(Send("GET " + folder_, Good()), HasSubstr("GET ''"));
}

TEST_F(LocalServerTest, RequestWithoutCookieOrFolderIsRefused) {
  Open();
  EXPECT_EQ(CodeOf("GET " + folder_, Host()), 401);
  std::string other = cookie_;
  other.back() = other.back() == '0' ? '1' : '0';
  EXPECT_EQ(CodeOf("GET " + folder_, absl::StrCat(Host(), "Cookie: ", other, "\r\n")), 401);
  EXPECT_EQ(CodeOf("GET " + folder_, absl::StrCat(Host(), "Cookie: ", cookie_, "0\r\n")), 401);
  EXPECT_EQ(CodeOf("GET /", Good()), 404);
  EXPECT_EQ(handled_, 0);
}

TEST_F(LocalServerTest, OtherHostIsRefused) {
  Open();
  const std::string port = host_.substr(host_.find(':'));
  for (const std::string& host : {"evil.example" + port, "localhost" + port,
                                  std::string("127.0.0.1"), host_ + "0", std::string()}) {
    EXPECT_THAT(
        Send("GET " + folder_, absl::StrCat("Host: ", host, "\r\nCookie: ", cookie_, "\r\n")),
        Not(StartsWith("HTTP/1.1 200 ")))
        << host;
    EXPECT_THAT(Send("GET " + token_, absl::StrCat("Host: ", host, "\r\n")),
                Not(HasSubstr("Set-Cookie")))
        << host;
  }
  EXPECT_EQ(handled_, 0);
}

TEST_F(LocalServerTest, PublishedPortListensOnOtherAddressesForTheSameHost) {
  static std::string other;  // as EXPECT_NONFATAL_FAILURE needs it
  other = absl::StrCat("127.0.0.2", host_.substr(host_.find(':')));
  EXPECT_NONFATAL_FAILURE(HttpConnection connection(other), "connect");
  Start(static_cast<uint16_t>(std::stoi(host_.substr(host_.find(':') + 1))));
  EXPECT_EQ(CodeOf("GET " + token_, absl::StrCat("Host: ", other, "\r\n"), "", other), 421);
  Open();
  EXPECT_EQ(CodeOf("GET " + folder_, Host(), "", other), 401);
  EXPECT_THAT(Send("GET " + folder_, Good(), "", other), HasSubstr("GET ''"));
}

TEST_F(LocalServerTest, OtherOriginIsRefused) {
  Open();
  const std::string post = "POST " + folder_ + "api/ask";
  const std::string length = "Content-Length: 2\r\n";
  EXPECT_EQ(CodeOf(post, Good() + length, "{}"), 403);
  for (const char* origin : {"null", "http://127.0.0.1:1", "https://evil.example"}) {
    EXPECT_EQ(CodeOf(post, absl::StrCat(Good(), length, "Origin: ", origin, "\r\n"), "{}"), 403)
        << origin;
  }
  for (const char* site : {"cross-site", "same-site"}) {
    EXPECT_EQ(CodeOf("GET " + folder_, absl::StrCat(Good(), "Sec-Fetch-Site: ", site, "\r\n")), 403)
        << site;
  }
  EXPECT_EQ(handled_, 0);
  EXPECT_THAT(Send(post, Good() + Origin() + length, "{}"), HasSubstr("POST 'api/ask'  {}"));
}

TEST_F(LocalServerTest, MethodsAndSizesAreLimited) {
  Open();
  for (const char* method : {"PUT ", "DELETE ", "OPTIONS ", "HEAD "}) {
    EXPECT_EQ(CodeOf(method + folder_, Good() + Origin()), 405) << method;
  }
  const std::string post = "POST " + folder_ + "api/target";
  EXPECT_EQ(CodeOf(post, Good() + Origin()), 411);
  EXPECT_EQ(CodeOf(post, absl::StrCat(Good(), Origin(),
                                      "Content-Length: ", LocalServer::kMaxBody + 1, "\r\n")),
            413);
  EXPECT_EQ(CodeOf("GET " + folder_, Good() + "Content-Length: 1\r\n", "x"), 400);
  EXPECT_EQ(handled_, 0);
}

TEST_F(LocalServerTest, EveryAnswerHasTheHeaders) {
  Open();
  for (const std::string& answer :
       {Send("GET " + folder_, Good()), Send("GET /", Host()), Send("GET /open", Host())}) {
    for (const char* header :
         {"Content-Security-Policy: default-src 'none'; ", "Referrer-Policy: no-referrer\r\n",
          "X-Content-Type-Options: nosniff\r\n", "Cache-Control: no-store\r\n",
          "Cross-Origin-Resource-Policy: same-origin\r\n"}) {
      EXPECT_THAT(answer, HasSubstr(header));
    }
  }
}

}  // namespace
}  // namespace privatemail::client
