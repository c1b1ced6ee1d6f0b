// A caller who speaks HTTP/2 to a daemon without TLS and takes no answer.
#ifndef PRIVATEMAIL_TESTS_TESTING_HTTP2_CALLER_H_
#define PRIVATEMAIL_TESTS_TESTING_HTTP2_CALLER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace privatemail::testing {

// One connection to a loopback port; closed on destruction. What gRPC's own client would not do is
// what it is for: its receive window is 0 (RFC 9113, 6.9.2), so that no byte of an answer's data
// may be sent, while headers and resets may. Checks nothing of what comes back.
class Http2Caller {
 public:
  // connected() is false when the port is closed.
  explicit Http2Caller(int port);
  ~Http2Caller();
  Http2Caller(Http2Caller&& other) noexcept;
  Http2Caller& operator=(Http2Caller&&) = delete;

  bool connected() const { return socket_ >= 0; }

  // Sends preface and settings. False: the connection is closed.
  bool Greet();

  // Begins a call with these bytes of a message that is said to be `message_bytes` long, and says
  // that there is no more when they are all of them. False: the connection is closed.
  bool Call(absl::string_view method, absl::string_view message, uint32_t message_bytes);

  // Whether the daemon closes the connection or a reset of a call comes (a frame of type
  // RST_STREAM) within so many seconds.
  bool IsEnded(double seconds);

 private:
  bool Send(absl::string_view bytes);
  bool SendFrame(char type, char flags, uint32_t stream, absl::string_view payload);

  int socket_ = -1;
  uint32_t next_stream_ = 1;
  std::string received_;
};

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_TESTING_HTTP2_CALLER_H_
