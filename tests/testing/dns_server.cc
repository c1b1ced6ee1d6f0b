#include "tests/testing/dns_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace privatemail {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kTypeAndClassBytes = 4;

// The first question; "" if the query is malformed.
std::string QuestionOf(const std::string& query) {
  size_t end = kHeaderBytes;
  while (end < query.size() && query[end] != '\0')
    end += 1 + static_cast<unsigned char>(query[end]);
  end += 1 + kTypeAndClassBytes;
  return end <= query.size() ? query.substr(kHeaderBytes, end - kHeaderBytes) : "";
}

}  // namespace

DnsServer::DnsServer(std::vector<std::string> addresses) : addresses_(std::move(addresses)) {
  socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in own = {};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(own);
  if (::bind(socket_, reinterpret_cast<const sockaddr*>(&own), size) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    std::abort();
  }
  address_ = "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  thread_ = std::thread([this] { Serve(); });
}

DnsServer::~DnsServer() {
  ::shutdown(socket_, SHUT_RDWR);  // ends what the thread waits for
  thread_.join();
  ::close(socket_);
}

void DnsServer::Serve() const {
  while (true) {
    std::string query(512, '\0');
    sockaddr_in from = {};
    socklen_t size = sizeof(from);
    auto* const sender = reinterpret_cast<sockaddr*>(&from);
    const ssize_t got = ::recvfrom(socket_, query.data(), query.size(), 0, sender, &size);
    if (got <= 0) return;
    query.resize(static_cast<size_t>(got));
    const std::string answer = AnswerTo(query);
    ::sendto(socket_, answer.data(), answer.size(), 0, sender, size);
  }
}

std::string DnsServer::AnswerTo(const std::string& query) const {
  const std::string question = QuestionOf(query);
  const bool asks_for_ipv4 =
      question.size() > kTypeAndClassBytes && question[question.size() - 3] == 1;
  const size_t answers = asks_for_ipv4 ? addresses_.size() : 0;
  std::string text = query.substr(0, 2);  // the query's number
  // A response with recursion available: one question, `answers` answers, no other records.
  text += std::string("\x81\x80\0\1\0", 5) + static_cast<char>(answers) + std::string(4, '\0');
  text += question;
  for (size_t i = 0; i < answers; ++i) {
    // The question's name, type A, class IN, TTL 0, four bytes.
    text += std::string("\xc0\x0c\0\1\0\1\0\0\0\0\0\4", 12);
    in_addr address = {};
    ::inet_pton(AF_INET, addresses_[i].c_str(), &address);
    text.append(reinterpret_cast<const char*>(&address), sizeof(address));
  }
  return text;
}

}  // namespace privatemail
