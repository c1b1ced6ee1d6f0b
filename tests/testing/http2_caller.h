// An HTTP/2 client without TLS that never reads an answer's data.
#ifndef PRIVATEMAIL_TESTS_TESTING_HTTP2_CALLER_H_
#define PRIVATEMAIL_TESTS_TESTING_HTTP2_CALLER_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace privatemail::testing {

// One connection to a loopback port. Does what gRPC's client does not: its receive window is 0 (RFC
// 9113, 6.9.2), so the server may send headers and resets but no data. Checks nothing it receives.
class Http2Caller {
 public:
  // connected() is false if the port is closed.
  explicit Http2Caller(int port);
  ~Http2Caller();
  Http2Caller(Http2Caller&& other) noexcept;
  Http2Caller& operator=(Http2Caller&&) = delete;

  bool connected() const { return socket_ >= 0; }

  // Sends preface and settings. Returns false if the connection is closed.
  bool Greet();

  // Begins a call with `message`, the first bytes of `message_bytes` announced ones; ends the
  // stream if they are all. Returns false if the connection is closed.
  bool Call(absl::string_view method, absl::string_view message, uint32_t message_bytes);

  // Whether the server closes the connection or resets a call (RST_STREAM) within `seconds`.
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
