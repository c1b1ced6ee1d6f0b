#include "server/connect/http_server.h"

#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/connect/connection.h"

namespace privatemail::server {

namespace asio = boost::asio;
using boost::system::error_code;

class HttpServer::Listener {
 public:
  Listener(Options options, Serve serve) : options_(std::move(options)) {
    connections_.serve = std::move(serve);
  }

  ~Listener() {
    StopAccepting();
    asio::post(io_, [this] { intervals_left_ = 10; });
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Listen() {
    const HostPort& address = options_.address;
    error_code error;
    const asio::ip::tcp::endpoint endpoint(asio::ip::make_address(address.host, error),
                                           static_cast<uint16_t>(address.port));
    if (!error) acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", address.ToString(),
                                                        " for ", options_.setting, ": ",
                                                        error.message()));
    }
    address_ = HostPort{address.host, acceptor_.local_endpoint().port()}.ToString();
    Accept();
    Watch();
    std::packaged_task<void()> serve([this] { io_.run(); });
    served_ = serve.get_future();
    thread_ = std::thread(std::move(serve));
    return absl::OkStatus();
  }

  void StopAccepting() {
    asio::post(io_, [this] {
      connections_.accepting = false;
      error_code ignored;
      acceptor_.close(ignored);
      while (!connections_.waiting.empty()) connections_.waiting.front()->Cut();
    });
  }

  void Drain(absl::Time deadline) {
    StopAccepting();
    served_.wait_until(absl::ToChronoTime(deadline));
  }

  const std::string& address() const { return address_; }

 private:
  static constexpr std::chrono::milliseconds kInterval{100};

  void Watch() {
    if (!connections_.accepting && connections_.all.empty()) return;
    Connection::CutClosed(connections_);
    if (intervals_left_ && (*intervals_left_)-- <= 0) {
      const std::list<Connection*> all = connections_.all;
      for (Connection* connection : all) connection->Cut();
    }
    watch_.expires_after(kInterval);
    watch_.async_wait([this](error_code /*error*/) { Watch(); });
  }

  void Accept() {
    acceptor_.async_accept([this](error_code error, asio::ip::tcp::socket socket) {
      if (!connections_.accepting) return;
      if (error) {  // no free file
        retry_.expires_after(kInterval);
        return retry_.async_wait([this](error_code /*error*/) { Accept(); });
      }
      Welcome(std::move(socket));
      Accept();
    });
  }

  bool MayConnect(const asio::ip::tcp::socket& socket) const {
    if (!options_.peers) return true;
    error_code error;
    const asio::ip::address from = WithoutMapping(socket.remote_endpoint(error).address());
    if (error) return false;
    const auto bytes = [](const auto& array) { return std::string(array.begin(), array.end()); };
    return from.is_loopback() ||
           options_.peers->contains(from.is_v4() ? bytes(from.to_v4().to_bytes())
                                                 : bytes(from.to_v6().to_bytes()));
  }

  void Welcome(asio::ip::tcp::socket socket) {
    if (!MayConnect(socket)) return;
    if (connections_.all.size() >= kMaxConnections) {
      if (connections_.waiting.empty()) return;
      connections_.waiting.front()->Cut();
    }
    std::make_shared<Connection>(std::move(socket), &connections_)->AwaitRequest();
  }

  const Options options_;
  asio::io_context io_{1};
  Connections connections_;
  asio::ip::tcp::acceptor acceptor_{io_};
  asio::steady_timer retry_{io_};
  asio::steady_timer watch_{io_};
  std::optional<int> intervals_left_;  // until all connections are cut
  std::string address_;
  std::future<void> served_;
  std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Listener> listener) : listener_(std::move(listener)) {}
HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Options options, Serve serve) {
  auto listener = std::make_unique<Listener>(std::move(options), std::move(serve));
  if (const absl::Status listening = listener->Listen(); !listening.ok()) return listening;
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(listener)));
}

std::string HttpServer::address() const { return listener_->address(); }
void HttpServer::Drain(absl::Time deadline) { listener_->Drain(deadline); }

}  // namespace privatemail::server
