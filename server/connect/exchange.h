// One request over HTTP, and the call that answers it.
#ifndef PRIVATEMAIL_SERVER_CONNECT_EXCHANGE_H_
#define PRIVATEMAIL_SERVER_CONNECT_EXCHANGE_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/client_callback.h>

#include <atomic>
#include <boost/asio.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/background_queue.h"
#include "server/connect/connection.h"
#include "server/connect/gateway.h"
#include "server/connect/protocol.h"

namespace privatemail::server {

// The state that the exchanges of one gateway share.
struct SharedByExchanges {
  const std::set<std::string> allowed_origins;
  const int64_t max_message_bytes;
  grpc::GenericStub stub;
  // Converts long messages in JSON, the shortest first. At low priority a busy machine would delay
  // them until their callers counted as idle.
  BackgroundQueue conversions{BackgroundQueue::Priority::kNormal};
};

// Runs on the thread of its connection, but for conversions: reads the messages of the request,
// gives them to the call, and writes its answers. Owned by its connection and its call.
class Exchange final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                       public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(std::shared_ptr<Connection> connection, SharedByExchanges* shared)
      : connection_(std::move(connection)), shared_(shared), work_(connection_->executor()) {}

  void Start();

 private:
  void OnReadInitialMetadataDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  void Run(std::function<void()> task);  // on the thread of the exchange
  // Answers a preflight request, or refuses a web page that is not allowed, and returns true.
  bool HandleOrigin();
  // A response of HTTP itself.
  void Refuse(int status, const std::string& header, const std::string& text);
  absl::Status Prepare();
  absl::Status AddMetadata(const char* header, const char* key);
  void BeginCall();

  void ReceiveEnvelope();
  void ReceivePiece();
  void HaveMessage();
  void EndMessages();
  void Send(absl::StatusOr<grpc::ByteBuffer> message);
  size_t MaxMessageBytes() const;

  void HaveAnswer(bool ok);
  void Deliver(std::vector<grpc::Slice> answer);
  // A chunk of the response, or all of it, before which comes the header if it is due.
  void Write(int status, const char* type, uint8_t flags, std::vector<grpc::Slice> body,
             std::function<void()> done);
  // Makes the call end with this error.
  void Fail(const absl::Status& error);
  void Complete(const grpc::Status& status);
  void EndCall();

  template <typename Result>
  void Convert(size_t bytes, std::function<Result()> convert, std::function<void(Result)> then);

  const std::shared_ptr<Connection> connection_;
  SharedByExchanges* const shared_;
  const boost::asio::executor_work_guard<boost::asio::any_io_executor> work_;
  std::string headers_;  // of every response
  const google::protobuf::MethodDescriptor* method_ = nullptr;
  Codec codec_;
  std::string path_;
  grpc::ClientContext context_;
  std::shared_ptr<Exchange> self_;            // while the call may use it
  std::atomic<bool> call_has_ended_ = false;  // no operation on it may start
  bool is_cut_ = false;
  bool is_delivering_ = false;  // an answer; otherwise the next one is being read
  bool has_header_ = false;     // of the response
  absl::Status error_;          // of the exchange itself

  char envelope_[kEnvelopeBytes];
  size_t message_bytes_ = 0;  // at most, of the message that is being received
  size_t received_bytes_ = 0;
  grpc::Slice piece_;
  std::vector<grpc::Slice> pieces_;
  int64_t messages_ = 0;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
};

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONNECT_EXCHANGE_H_
