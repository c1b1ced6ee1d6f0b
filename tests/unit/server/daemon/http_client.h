// Raw HTTP/1.1 client for tests.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_DAEMON_HTTP_CLIENT_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_DAEMON_HTTP_CLIENT_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/host_port.h"

namespace privatemail::testing {

class HttpConnection {
 public:
  // `address`: IPv4.
  explicit HttpConnection(const std::string& address)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto where = ParseHostPort("address", address);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(where->port));
    ::inet_pton(AF_INET, where->host.c_str(), &to.sin_addr);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }
  ~HttpConnection() { ::close(socket_); }
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // False: the server has closed the connection.
  bool Send(const std::string& text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }

  // All bytes until the server closes the connection.
  std::string Receive() const {
    std::string answer;
    char buffer[4096];
    for (ssize_t size; (size = ::read(socket_, buffer, sizeof(buffer))) > 0;) {
      answer.append(buffer, static_cast<size_t>(size));
    }
    return answer;
  }

 private:
  int socket_;
};

inline std::string Http(const std::string& address, const std::string& method,
                        const std::string& path, const std::string& host = "localhost") {
  const HttpConnection connection(address);
  EXPECT_TRUE(connection.Send(absl::StrCat(method, " ", path, " HTTP/1.1\r\nHost: ", host,
                                           "\r\nConnection: close\r\n\r\n")));
  return connection.Receive();
}

inline std::string HttpGet(const std::string& address, const std::string& path) {
  return Http(address, "GET", path);
}

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_DAEMON_HTTP_CLIENT_H_
