// Fuzzes the gateway by the bytes of a connection: HTTP, bodies and envelopes. A server in this
// process answers each message by itself, so that answers are read and delivered, too.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <boost/asio.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/connect/gateway.h"
#include "tests/fuzz/fuzz.h"

namespace privatemail::server {
namespace {

namespace asio = boost::asio;

class EchoCall final : public grpc::ServerGenericBidiReactor {
 public:
  EchoCall() {
    StartSendInitialMetadata();
    StartRead(&message_);
  }

 private:
  void OnReadDone(bool ok) override { ok ? StartWrite(&message_) : Finish(grpc::Status::OK); }
  void OnWriteDone(bool ok) override {
    ok ? StartRead(&message_) : Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

  grpc::ByteBuffer message_;
};

class EchoService final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* /*context*/) override {
    return new EchoCall;
  }
};

asio::ip::tcp::endpoint StartGateway() {
  static EchoService echo;
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&echo);
  static grpc::Server* const server = builder.BuildAndStart().release();
  static HttpServer* const gateway =
      HttpServer::Start({.address = {"127.0.0.1", 0}},
                        ServeRpcs({"https://a.example"}, 1 << 20, server->InProcessChannel({})))
          ->release();
  const std::string address = gateway->address();
  return {asio::ip::address_v4::loopback(),
          static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)))};
}

}  // namespace
}  // namespace privatemail::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace asio = boost::asio;
  static const asio::ip::tcp::endpoint address = privatemail::server::StartGateway();
  asio::io_context io;
  asio::ip::tcp::socket client(io);
  boost::system::error_code error;
  do {  // the alarm of libFuzzer interrupts
    client = asio::ip::tcp::socket(io);
    client.connect(address, error);
  } while (error == asio::error::interrupted);
  if (error) throw boost::system::system_error(error);
  client.set_option(asio::socket_base::linger(true, 0));  // leaves no port in use
  asio::write(client, asio::buffer(data, size), error);
  // Until the gateway has answered and closed, or waits for more.
  char answer[4096];
  asio::steady_timer timer(io);
  const auto read = [&](const auto& again) -> void {
    timer.expires_after(std::chrono::milliseconds(20));
    timer.async_wait([&](boost::system::error_code cancelled) {
      if (!cancelled) client.cancel();
    });
    client.async_read_some(asio::buffer(answer), [&](boost::system::error_code ended, size_t) {
      if (!ended) return again(again);
      timer.cancel();
    });
  };
  read(read);
  io.run();
  return 0;
}
