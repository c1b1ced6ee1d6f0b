#include "tests/testing/http2_caller.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace privatemail::testing {
namespace {

// RFC 9113, section 6.
constexpr char kData = 0;
constexpr char kHeaders = 1;
constexpr char kReset = 3;
constexpr char kSettings = 4;
constexpr char kEndStream = 1;
constexpr char kEndHeaders = 4;
constexpr size_t kFrameHeaderBytes = 9;
constexpr size_t kLargestFrame = 16384;

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> 8 * i));
  return text;
}

// A field that neither table of RFC 7541 holds, its strings as they are.
std::string Field(absl::string_view name, absl::string_view value) {
  return absl::StrCat(absl::string_view("\0", 1), BigEndian(static_cast<uint32_t>(name.size()), 1),
                      name, BigEndian(static_cast<uint32_t>(value.size()), 1), value);
}

}  // namespace

Http2Caller::Http2Caller(int port) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return;
  ::close(socket_);
  socket_ = -1;
}

Http2Caller::~Http2Caller() {
  if (socket_ >= 0) ::close(socket_);
}

Http2Caller::Http2Caller(Http2Caller&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      next_stream_(other.next_stream_),
      received_(std::move(other.received_)) {}

bool Http2Caller::Greet() {
  constexpr uint16_t kInitialWindowSize = 4;
  return Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") &&
         SendFrame(kSettings, 0, 0,
                   absl::StrCat(BigEndian(kInitialWindowSize, 2), BigEndian(0, 4)));
}

bool Http2Caller::Call(absl::string_view method, absl::string_view message,
                       uint32_t message_bytes) {
  const uint32_t stream = std::exchange(next_stream_, next_stream_ + 2);
  const std::string headers =
      absl::StrCat(Field(":method", "POST"), Field(":scheme", "http"), Field(":path", method),
                   Field(":authority", "localhost"), Field("te", "trailers"),
                   Field("content-type", "application/grpc"));
  if (!SendFrame(kHeaders, kEndHeaders, stream, headers)) return false;
  const std::string body =
      absl::StrCat(absl::string_view("\0", 1), BigEndian(message_bytes, 4), message);
  for (size_t first = 0; first < body.size(); first += kLargestFrame) {
    const absl::string_view part = absl::string_view(body).substr(first, kLargestFrame);
    const bool last = first + part.size() == body.size() && message.size() == message_bytes;
    if (!SendFrame(kData, last ? kEndStream : 0, stream, part)) return false;
  }
  return true;
}

bool Http2Caller::IsEnded(double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (true) {
    while (received_.size() >= kFrameHeaderBytes) {
      if (received_[3] == kReset) return true;
      size_t length = kFrameHeaderBytes;
      for (int i = 0; i < 3; ++i) {
        length += static_cast<size_t>(static_cast<unsigned char>(received_[i])) << 8 * (2 - i);
      }
      if (received_.size() < length) break;
      received_.erase(0, length);
    }
    const std::chrono::duration<double, std::milli> left =
        deadline - std::chrono::steady_clock::now();
    pollfd event = {socket_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&event, 1, static_cast<int>(left.count()) + 1) == 0) {
      return false;
    }
    char bytes[4096];
    const ssize_t count = ::recv(socket_, bytes, sizeof(bytes), 0);
    if (count <= 0) return true;
    received_.append(bytes, static_cast<size_t>(count));
  }
}

bool Http2Caller::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool Http2Caller::SendFrame(char type, char flags, uint32_t stream, absl::string_view payload) {
  return Send(absl::StrCat(BigEndian(static_cast<uint32_t>(payload.size()), 3),
                           absl::string_view(&type, 1), absl::string_view(&flags, 1),
                           BigEndian(stream, 4), payload));
}

}  // namespace privatemail::testing
