// What a network sees of a conversation: a relay of bytes that keeps what the client sent.
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

// Listens on loopback and passes one connection after the other on to a server, byte for byte.
class Tap {
 public:
  explicit Tap(const std::string& server);  // 127.0.0.1:PORT
  ~Tap();                                   // when no client is connected any more
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  const std::string& address() const { return address_; }

  // All that the next client sent, once it has closed its connection. Empty when that takes half a
  // minute.
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

// What one call sent: its headers as they were compressed, and its data without frame borders.
struct SentCall {
  std::string headers;
  std::string data;

  bool operator==(const SentCall&) const = default;
};

// The calls of an HTTP/2 conversation in the order in which they began (RFC 9113). Frames that
// belong to no call (settings, windows, pings) are left out; anything else fails the test.
std::vector<SentCall> CallsOf(const std::string& conversation);

}  // namespace privatemail::e2e

#endif  // PRIVATEMAIL_TESTS_E2E_TAP_H_
