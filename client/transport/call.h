// RPCs of the client over messages as bytes, so that nothing of a server is parsed before its
// memory is known.
#ifndef PRIVATEMAIL_CLIENT_TRANSPORT_CALL_H_
#define PRIVATEMAIL_CLIENT_TRANSPORT_CALL_H_

#include <google/protobuf/message.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/cancellation.h"
#include "common/base/status_macros.h"
#include "privatemail/transport.h"

namespace privatemail::client {

// One RPC of any kind, unary or streaming. Every function blocks. Held by the client; what it reads
// is untrusted. Not thread-safe.
class Call {
 public:
  // method: "/privatemail.v1.RetrievalService/Retrieve". options.max_memory: of all messages that
  // are read together; see ForgetMessages. options.cancelled ends the call.
  Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
       const ConnectionOptions& options, absl::Time deadline);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // False: the server takes no more; Finish returns why.
  bool Write(const google::protobuf::Message& message);
  void WritesDone();
  // Writes the only or last message.
  void WriteLast(const google::protobuf::Message& message);

  // Reads the next message. False: there is none; Finish returns whether that is an error.
  bool Read(google::protobuf::Message* message);
  // The caller holds none of the messages that were read so far: their memory counts no more.
  void ForgetMessages() { memory_ = 0; }

  // Ends the call; the first `status` is returned by Finish.
  void Cancel(const absl::Status& status);
  // Whether the client ended the call, by Cancel or because of a message that Read refused.
  bool cancelled() const { return !cancelled_.ok(); }

  // Call once, last. The server's status, except:
  // RESOURCE_EXHAUSTED: the messages would take more than max_memory when parsed.
  // DATA_LOSS: a message could not be parsed, or the call succeeded without one.
  absl::Status Finish();

  // After Finish: whether the server itself made the status, and not gRPC or a proxy.
  bool is_own_status() const { return is_own_status_; }

  // The wait after which a server that refused the call for the key's rate takes it again. Call
  // after Finish; nullopt if the server named none, or the client ended the call.
  std::optional<absl::Duration> retry_after() const;

 private:
  using Stream = grpc::ClientAsyncReaderWriter<google::protobuf::MessageLite, grpc::ByteBuffer>;

  bool Wait();  // for the running operation; returns whether it succeeded
  absl::Status Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message);

  const int64_t max_memory_;
  const CancelledFunction is_cancelled_by_caller_;
  int64_t memory_ = 0;  // estimated, of the messages that the caller holds
  int64_t messages_ = 0;
  absl::Status cancelled_;  // why the client ended the call
  bool finished_ = false;
  bool is_own_status_ = false;
  grpc::ClientContext context_;
  grpc::CompletionQueue operations_;
  std::unique_ptr<Stream> stream_;
};

// Whether a call waits and is sent again when the key exceeds its rate.
enum class OnRateLimit { kReturn, kWait };

// The end of one attempt of a call.
struct Attempted {
  absl::Status status;
  std::optional<absl::Duration> retry_after;
};

// Attempts of a call; the options' deadline bounds all together. OnRateLimit::kWait: repeated after
// the wait that a refusal for the key's rate names (RESOURCE_EXHAUSTED with kRetryAfterMetadata);
// returns the refusal if the wait exceeds the deadline. Times depend on the server's answers only.
absl::Status CallWithDeadline(const ConnectionOptions& options, OnRateLimit on_rate_limit,
                              absl::FunctionRef<Attempted(absl::Time deadline)> attempt);

// RESOURCE_EXHAUSTED naming the field, which gRPC's own error does not: the message is larger than
// kMaxMessageBytes.
absl::Status CheckSize(const char* field, const google::protobuf::MessageLite& message);

// Ends the call. Errors of the client itself stay as they are.
absl::Status FinishCall(const ConnectionOptions& options, Call* call);

// "/privatemail.v1.KeysService/ListKeys"
template <typename Service>
std::string MethodOf(absl::string_view name) {
  return absl::StrCat("/", Service::service_full_name(), "/", name);
}

// One unary call of a service.
template <typename Service, typename Response>
absl::StatusOr<Response> CallUnary(const ConnectionOptions& options,
                                   const std::shared_ptr<grpc::Channel>& channel,
                                   absl::string_view name, const google::protobuf::Message& request,
                                   OnRateLimit on_rate_limit = OnRateLimit::kReturn) {
  Response response;
  const auto attempt = [&](absl::Time deadline) {
    Call call(channel, MethodOf<Service>(name), options, deadline);
    call.WriteLast(request);
    call.Read(&response);
    return Attempted{FinishCall(options, &call), call.retry_after()};
  };
  PM_RETURN_IF_ERROR(CallWithDeadline(options, on_rate_limit, attempt));
  return response;
}

}  // namespace privatemail::client

#endif  // PRIVATEMAIL_CLIENT_TRANSPORT_CALL_H_
