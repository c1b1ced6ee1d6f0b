#include "tests/e2e/tap.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/string_view.h"

namespace privatemail::e2e {
namespace {

using boost::asio::ip::tcp;

// Copies until either side ends; returns the copied bytes.
std::string Copy(tcp::socket& from, tcp::socket& to) {
  std::string copied;
  std::array<char, 16384> buffer;
  boost::system::error_code error;
  while (!error) {
    const size_t size = from.read_some(boost::asio::buffer(buffer), error);
    copied.append(buffer.data(), size);
    if (!error) boost::asio::write(to, boost::asio::buffer(buffer.data(), size), error);
  }
  boost::system::error_code ignored;  // the other side may have hung up first
  to.shutdown(tcp::socket::shutdown_send, ignored);
  return copied;
}

uint32_t BigEndian(absl::string_view bytes) {
  uint32_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr size_t kFrameHeaderBytes = 9;
enum FrameType : uint8_t { kData = 0, kHeaders = 1, kResetStream = 3, kContinuation = 9 };

}  // namespace

struct Tap::Sockets {
  boost::asio::io_context context;
  tcp::endpoint server;
  tcp::acceptor acceptor{context, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)};
};

Tap::Tap(const std::string& server) : sockets_(std::make_unique<Sockets>()) {
  const size_t colon = server.rfind(':');
  sockets_->server = {boost::asio::ip::make_address(server.substr(0, colon)),
                      static_cast<uint16_t>(std::stoi(server.substr(colon + 1)))};
  address_ = "127.0.0.1:" + std::to_string(sockets_->acceptor.local_endpoint().port());
  thread_ = std::thread([this] { Serve(); });
}

Tap::~Tap() {
  ::shutdown(sockets_->acceptor.native_handle(), SHUT_RDWR);  // ends the wait for a client
  thread_.join();
}

void Tap::Serve() {
  while (true) {
    tcp::socket client(sockets_->context);
    tcp::socket server(sockets_->context);
    boost::system::error_code error;
    sockets_->acceptor.accept(client, error);
    if (error) return;
    server.connect(sockets_->server);
    std::thread answers([&] { Copy(server, client); });
    std::string conversation = Copy(client, server);
    answers.join();
    const std::lock_guard<std::mutex> guard(mutex_);
    conversations_.push_back(std::move(conversation));
    ended_.notify_all();
  }
}

std::string Tap::NextConversation() {
  std::unique_lock<std::mutex> lock(mutex_);
  ended_.wait_for(lock, std::chrono::minutes(5), [&] { return !conversations_.empty(); });
  if (conversations_.empty()) return "";
  std::string conversation = std::move(conversations_.front());
  conversations_.pop_front();
  return conversation;
}

std::vector<SentCall> CallsOf(const std::string& conversation) {
  EXPECT_EQ(conversation.substr(0, kPreface.size()), kPreface);
  std::map<uint32_t, SentCall> calls;  // clients number their streams upwards
  size_t at = kPreface.size();
  while (at + kFrameHeaderBytes <= conversation.size()) {
    const absl::string_view header(conversation.data() + at, kFrameHeaderBytes);
    const uint32_t size = BigEndian(header.substr(0, 3));
    const auto type = static_cast<uint8_t>(header[3]);
    const uint32_t stream = BigEndian(header.substr(5, 4));
    const std::string payload = conversation.substr(at + kFrameHeaderBytes, size);
    EXPECT_EQ(payload.size(), size) << "the last frame is cut short";
    at += kFrameHeaderBytes + size;
    if (type == kData) calls[stream].data += payload;
    if (type == kHeaders || type == kContinuation) calls[stream].headers += payload;
    EXPECT_NE(type, kResetStream) << "a call was broken off";
  }
  EXPECT_EQ(at, conversation.size());
  std::vector<SentCall> in_order;
  for (auto& [stream, call] : calls) {
    if (!call.headers.empty()) in_order.push_back(std::move(call));
  }
  return in_order;
}

}  // namespace privatemail::e2e
