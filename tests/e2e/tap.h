// A TCP relay that records what clients send.
#ifndef PRIVATEMAIL_TESTS_E2E_TAP_H_
#define PRIVATEMAIL_TESTS_E2E_TAP_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace privatemail::e2e {

// Listens on loopback and forwards one connection after the other to a server.
class Tap {
 public:
  explicit Tap(const std::string& server);  // 127.0.0.1:PORT
  ~Tap();                                   // requires that no client is connected
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  const std::string& address() const { return address_; }

  // Waits until the next client closes its connection; returns what it sent. Empty after 30 s.
  std::string NextConversation();

 private:
  struct Sockets;
  void Serve();

  std::unique_ptr<Sockets> sockets_;
  std::string address_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::deque<std::string> conversations_;
  std::thread thread_;
};

// The bytes of one call: compressed headers, and data without frame headers.
struct SentCall {
  std::string headers;
  std::string data;

  bool operator==(const SentCall&) const = default;
};

// Parses the calls of an HTTP/2 conversation in their order (RFC 9113). Skips frames that belong to
// no call (settings, windows, pings); fails the test on anything else.
std::vector<SentCall> CallsOf(const std::string& conversation);

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_TAP_H_
