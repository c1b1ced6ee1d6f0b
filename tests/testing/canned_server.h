// A gRPC server that answers with bytes of a test's choice, which no honest server sends.
#ifndef PRIVATEMAIL_TESTS_TESTING_CANNED_SERVER_H_
#define PRIVATEMAIL_TESTS_TESTING_CANNED_SERVER_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace privatemail::testing {

struct CannedAnswer {
  // The message number n, from 0; nullopt ends the answer.
  std::function<std::optional<std::string>(int64_t n)> message;
  grpc::Status status = grpc::Status::OK;
};

// On a free loopback port, without TLS. A method's answer begins when the caller has sent all of
// its messages. Set answers before they are called for.
class CannedServer : private grpc::CallbackGenericService {
 public:
  CannedServer();
  ~CannedServer() override;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // method: "ListCollections", of any service. Methods without an answer return UNIMPLEMENTED.
  void Answer(const std::string& method, CannedAnswer answer);
  void Answer(const std::string& method, std::vector<std::string> messages,
              grpc::Status status = grpc::Status::OK);
  void Answer(const std::string& method, const google::protobuf::MessageLite& message) {
    Answer(method, {message.SerializeAsString()});
  }

  int64_t messages_sent() const { return sent_; }

 private:
  class Reactor;

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  std::map<std::string, CannedAnswer> answers_;
  std::atomic<int64_t> sent_ = 0;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// `bytes`, `times` times.
std::string Repeated(const std::string& bytes, int64_t times);

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_TESTING_CANNED_SERVER_H_
