// A DNS server that knows one list of addresses.
#ifndef PRIVATEMAIL_TESTS_TESTING_DNS_SERVER_H_
#define PRIVATEMAIL_TESTS_TESTING_DNS_SERVER_H_

#include <string>
#include <thread>
#include <vector>

namespace privatemail {

// Answers each question for an IPv4 address with all of its addresses, any other with none (RFC
// 1035, over UDP on its own loopback port).
class DnsServer {
 public:
  explicit DnsServer(std::vector<std::string> addresses);
  ~DnsServer();
  DnsServer(const DnsServer&) = delete;
  DnsServer& operator=(const DnsServer&) = delete;

  // 127.0.0.1:PORT
  const std::string& address() const { return address_; }

 private:
  void Serve() const;
  std::string AnswerTo(const std::string& query) const;

  const std::vector<std::string> addresses_;
  int socket_ = -1;
  std::string address_;
  std::thread thread_;
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_TESTS_TESTING_DNS_SERVER_H_
