// A connection of an HTTP client, and the interface between it and what answers its requests.
#ifndef PRIVATEMAIL_SERVER_CONNECT_CONNECTION_H_
#define PRIVATEMAIL_SERVER_CONNECT_CONNECTION_H_

#include <grpcpp/support/slice.h>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>  // boost/asio.hpp needs it
#include <vector>

namespace privatemail::server {

class Connection;

// An IPv4 address as such, also that of a socket for IPv6.
boost::asio::ip::address WithoutMapping(const boost::asio::ip::address& address);

// The state that the connections of one listener share, used on one thread.
struct Connections {
  // The maximum bytes of responses that are being written; beyond it the longest one is cut.
  static constexpr size_t kMaxUntakenBytes = 512 << 20;
  // How long a client may neither send its next request nor take a piece of a response.
  std::chrono::milliseconds idle_time = std::chrono::seconds(60);

  // Called with each request, whose header is read.
  std::function<void(std::shared_ptr<Connection>)> serve;
  std::list<Connection*> all;
  std::list<Connection*> waiting;  // for a request, the longest first
  std::list<Connection*> writing;  // the longest first
  size_t untaken_bytes = 0;
  bool accepting = true;
};

// Reads requests, one after another, and writes responses. Not thread-safe; owned by its operations
// and by the request that is being served.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  using Request = boost::beast::http::request<boost::beast::http::buffer_body>;

  // The most that is read ahead of the parser, which waits for the end of a header or of a chunk.
  static constexpr size_t kMaxBufferedBytes = 128 << 10;

  // The most of a body that is read or written at once.
  static constexpr size_t kPieceBytes = 64 << 10;

  Connection(boost::asio::ip::tcp::socket socket, Connections* connections);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Reads the next header and calls Connections::serve.
  void AwaitRequest();

  const Request& request() const { return parser_->get(); }
  boost::asio::any_io_executor executor() { return stream_.get_executor(); }
  std::string peer() const { return peer_; }  // as in gRPC: "ipv4:192.0.2.1:40100"
  std::optional<size_t> content_length() const;
  bool HasReadBody() const { return parser_->is_done(); }

  // Called once if the connection is cut before Finish.
  void SetOnCut(std::function<void()> on_cut) { on_cut_ = std::move(on_cut); }

  // Fills `size` bytes with those of the body; `done` gets fewer at its end.
  void Read(char* to, size_t size, std::function<void(size_t)> done);
  // The first lines of a response, which all responses have.
  std::string Head(int status) const;
  void Write(std::string head, std::vector<grpc::Slice> body, std::function<void()> done);

  // Ends the service of this request: awaits the next one, or closes.
  void Finish(bool keep_alive);
  // Closes at once.
  void Cut();
  // Cuts those whose client has closed them, which no operation may notice.
  static void CutClosed(const Connections& connections);

 private:
  void ReadMore(size_t size, std::function<void(size_t)> done);
  void StopWaiting();
  void StopWriting();
  void Discard();

  boost::beast::tcp_stream stream_;
  Connections* const connections_;
  const std::list<Connection*>::iterator position_;
  std::optional<std::list<Connection*>::iterator> waiting_;
  std::optional<std::list<Connection*>::iterator> writing_;
  std::string peer_;
  boost::beast::flat_buffer buffer_{kMaxBufferedBytes};
  std::optional<boost::beast::http::request_parser<boost::beast::http::buffer_body>> parser_;
  bool is_first_ = true;
  bool is_cut_ = false;
  bool is_malformed_ = false;
  bool is_reading_ = false;
  bool is_discarding_ = false;
  std::function<void()> on_cut_;
  std::string head_;  // being written, as is body_
  std::vector<grpc::Slice> body_;
  size_t body_bytes_ = 0;
  char discarded_[4096];
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONNECT_CONNECTION_H_
