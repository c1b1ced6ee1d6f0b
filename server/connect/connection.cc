#include "server/connect/connection.h"

#include <poll.h>

#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace privatemail::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr uint32_t kMaxHeaderBytes = 16 << 10;
constexpr std::chrono::seconds kHeaderTime(5);
constexpr std::chrono::seconds kDiscardTime(2);
// A larger buffer would hide for longer that a client reads.
constexpr int kSendBufferBytes = 256 << 10;

std::string PeerOf(const asio::ip::tcp::socket& socket) {
  error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  if (error) return "";
  const asio::ip::address address = WithoutMapping(endpoint.address());
  return address.is_v4() ? absl::StrCat("ipv4:", address.to_string(), ":", endpoint.port())
                         : absl::StrCat("ipv6:%5B", address.to_string(), "%5D:", endpoint.port());
}

// Its body would be taken for the next request.
bool HasUnknownTransferEncoding(const Connection::Request& request) {
  const auto encoding = request[http::field::transfer_encoding];
  return !encoding.empty() && !beast::iequals(encoding, "chunked");
}

}  // namespace

asio::ip::address WithoutMapping(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

Connection::Connection(asio::ip::tcp::socket socket, Connections* connections)
    : stream_(std::move(socket)),
      connections_(connections),
      position_(connections->all.insert(connections->all.end(), this)),
      peer_(PeerOf(stream_.socket())) {
  error_code ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  stream_.socket().set_option(asio::socket_base::keep_alive(true), ignored);
  stream_.socket().set_option(asio::socket_base::send_buffer_size(kSendBufferBytes), ignored);
}

Connection::~Connection() {
  StopWaiting();
  StopWriting();
  connections_->all.erase(position_);
}

void Connection::StopWaiting() {
  if (waiting_) connections_->waiting.erase(*waiting_);
  waiting_.reset();
}

void Connection::StopWriting() {
  if (!writing_) return;
  connections_->writing.erase(*writing_);
  connections_->untaken_bytes -= body_bytes_;
  writing_.reset();
}

void Connection::AwaitRequest() {
  parser_.emplace();
  parser_->header_limit(kMaxHeaderBytes);
  parser_->body_limit(std::numeric_limits<uint64_t>::max());  // who reads the body counts
  buffer_.shrink_to_fit();
  waiting_ = connections_->waiting.insert(connections_->waiting.end(), this);
  stream_.expires_after(std::exchange(is_first_, false) ? kHeaderTime : connections_->idle_time);
  http::async_read_header(
      stream_, buffer_, *parser_, [self = shared_from_this()](error_code error, size_t /*bytes*/) {
        self->StopWaiting();
        self->stream_.expires_never();
        if (!error && HasUnknownTransferEncoding(self->request())) {
          error = http::error::bad_transfer_encoding;
        }
        if (!error) return self->connections_->serve(self);
        if (error == http::error::end_of_stream ||
            error.category() != http::make_error_code(http::error{}).category()) {
          return;
        }
        const char* const status = error == http::error::header_limit
                                       ? "431 Request Header Fields Too Large"
                                       : "400 Bad Request";
        self->is_malformed_ = true;
        self->Write(
            absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            {}, [self] { self->Discard(); });
      });
}

std::optional<size_t> Connection::content_length() const {
  const boost::optional<uint64_t> length = parser_->content_length();
  return length ? std::optional<size_t>(*length) : std::nullopt;
}

void Connection::Read(char* to, size_t size, std::function<void(size_t)> done) {
  auto& body = parser_->get().body();
  body.data = to;
  body.size = size;
  body.more = true;
  ReadMore(size, std::move(done));
}

// Not async_read, which waits for the bytes after those that fill the buffer.
void Connection::ReadMore(size_t size, std::function<void(size_t)> done) {
  const size_t left = parser_->get().body().size;
  if (left == 0 || parser_->is_done()) return done(size - left);
  is_reading_ = true;
  http::async_read_some(stream_, buffer_, *parser_,
                        [self = shared_from_this(), size, done = std::move(done)](
                            error_code error, size_t /*bytes*/) mutable {
                          self->is_reading_ = false;
                          if (self->is_discarding_) return self->Discard();
                          const bool failed = error && error != http::error::need_buffer;
                          if (failed || self->is_cut_) return self->Cut();
                          self->ReadMore(size, std::move(done));
                        });
}

std::string Connection::Head(int status) const {
  const std::string reason(http::obsolete_reason(static_cast<http::status>(status)));
  return absl::StrCat("HTTP/1.1 ", status, " ", reason, "\r\nCache-Control: no-store\r\n",
                      request().keep_alive() && HasReadBody() ? "" : "Connection: close\r\n");
}

void Connection::Write(std::string head, std::vector<grpc::Slice> body,
                       std::function<void()> done) {
  if (writing_) return Cut();  // a client that does not take what it asked for
  head_ = std::move(head);
  body_ = std::move(body);
  std::vector<asio::const_buffer> buffers = {asio::buffer(head_)};
  for (const grpc::Slice& slice : body_) buffers.emplace_back(slice.begin(), slice.size());
  body_bytes_ = asio::buffer_size(buffers);
  while (connections_->untaken_bytes + body_bytes_ > Connections::kMaxUntakenBytes &&
         !connections_->writing.empty()) {
    connections_->writing.front()->Cut();
  }
  connections_->untaken_bytes += body_bytes_;
  writing_ = connections_->writing.insert(connections_->writing.end(), this);
  asio::async_write(
      stream_, buffers,
      [this](error_code error, size_t /*bytes*/) -> size_t {  // before each piece
        if (error) return 0;
        stream_.expires_after(connections_->idle_time);
        return kPieceBytes;
      },
      [self = shared_from_this(), done = std::move(done)](error_code error, size_t /*bytes*/) {
        self->stream_.expires_never();
        self->StopWriting();
        self->body_.clear();
        if (error || self->is_cut_) return self->Cut();
        done();
      });
}

void Connection::Finish(bool keep_alive) {
  on_cut_ = nullptr;
  if (keep_alive && HasReadBody() && connections_->accepting) return AwaitRequest();
  Discard();
}

// Closed at once, a connection with unread bytes would be reset, and its client might not see the
// response.
void Connection::Discard() {
  is_discarding_ = true;
  if (is_reading_) return stream_.cancel();  // comes again
  error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  if (!is_malformed_ && HasReadBody()) return;
  stream_.expires_after(kDiscardTime);
  const auto discard = [](const auto& again, std::shared_ptr<Connection> self) -> void {
    Connection& connection = *self;
    connection.stream_.async_read_some(
        asio::buffer(connection.discarded_),
        [again, self = std::move(self)](error_code error, size_t /*bytes*/) {
          if (!error) again(again, self);
        });
  };
  discard(discard, shared_from_this());
}

void Connection::Cut() {
  is_cut_ = true;
  StopWaiting();
  StopWriting();
  stream_.close();
  if (const auto on_cut = std::exchange(on_cut_, nullptr)) on_cut();
}

void Connection::CutClosed(const Connections& connections) {
  std::vector<std::weak_ptr<Connection>> serving;
  std::vector<pollfd> polled;
  for (Connection* connection : connections.all) {
    if (!connection->on_cut_) continue;
    serving.push_back(connection->weak_from_this());
    polled.push_back({connection->stream_.socket().native_handle(), POLLRDHUP, 0});
  }
  ::poll(polled.data(), polled.size(), /*timeout=*/0);
  for (size_t i = 0; i < polled.size(); ++i) {
    const auto connection = polled[i].revents == 0 ? nullptr : serving[i].lock();
    if (connection != nullptr) connection->Cut();
  }
}

}  // namespace privatemail::server
