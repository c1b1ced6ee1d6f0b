#include "client/transport/call.h"

#include <grpcpp/impl/codegen/proto_utils.h>  // serialisation of messages

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/schemes/memory_budget.h"
#include "client/transport/connection_error.h"
#include "common/base/stopwatch.h"
#include "common/rpc/parse_message.h"
#include "common/rpc/status.h"

namespace privatemail::client {
namespace {

// Lower bound on the server's retry-after: 0 would make a busy loop.
constexpr absl::Duration kMinWait = absl::Milliseconds(10);

constexpr absl::Duration kPollEvery =
    absl::Milliseconds(50);  // interval of the checks for cancellation

}  // namespace

Call::Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
           const ConnectionOptions& options, absl::Time deadline)
    : max_memory_(options.max_memory), is_cancelled_by_caller_(options.cancelled) {
  if (deadline != absl::InfiniteFuture()) context_.set_deadline(absl::ToChronoTime(deadline));
  stream_ = grpc::TemplatedGenericStub<google::protobuf::MessageLite, grpc::ByteBuffer>(channel)
                .PrepareCall(&context_, method, &operations_);
  stream_->StartCall(this);
  Wait();  // of a call that fails at once, Finish returns why
}

Call::~Call() {
  if (!finished_) {
    context_.TryCancel();
    Finish().IgnoreError();
  }
  operations_.Shutdown();
  Wait();  // for the end of the queue
}

bool Call::Wait() {
  using Queue = grpc::CompletionQueue;
  void* tag = nullptr;
  bool ok = false;
  if (!is_cancelled_by_caller_) return operations_.Next(&tag, &ok) && ok;
  Queue::NextStatus next;
  do {
    if (const absl::Status status = CheckNotCancelled(is_cancelled_by_caller_); !status.ok()) {
      Cancel(status);
    }
    next = operations_.AsyncNext(&tag, &ok, absl::ToChronoTime(absl::Now() + kPollEvery));
  } while (next == Queue::TIMEOUT);
  return next == Queue::GOT_EVENT && ok;
}

bool Call::Write(const google::protobuf::Message& message) {
  stream_->Write(message, this);
  return Wait();
}

void Call::WritesDone() {
  stream_->WritesDone(this);
  Wait();
}

void Call::WriteLast(const google::protobuf::Message& message) {
  stream_->WriteLast(message, grpc::WriteOptions(), this);
  Wait();
}

absl::Status Call::Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  const auto admit = [&](int64_t memory) {
    memory_ += memory;
    return CheckMemory(static_cast<double>(memory_), "the server's answer", max_memory_);
  };
  const absl::Status parsed = ParseMessage(bytes, admit, message);
  if (!absl::IsInvalidArgument(parsed)) return parsed;
  return absl::DataLossError(absl::StrCat("answer of the server: ", parsed.message()));
}

bool Call::Read(google::protobuf::Message* message) {
  if (!cancelled_.ok()) return false;
  grpc::ByteBuffer bytes;
  stream_->Read(&bytes, this);
  if (!Wait()) return false;
  ++messages_;
  if (const absl::Status parsed = Parse(bytes, message); !parsed.ok()) Cancel(parsed);
  return cancelled_.ok();
}

void Call::Cancel(const absl::Status& status) {
  if (cancelled_.ok()) cancelled_ = status;
  context_.TryCancel();
}

absl::Status Call::Finish() {
  grpc::Status status;
  stream_->Finish(&status, this);
  Wait();
  finished_ = true;
  if (!cancelled_.ok()) return cancelled_;
  if (status.ok() && messages_ == 0) {
    return absl::DataLossError("the server ended the call without an answer");
  }
  is_own_status_ = IsOwnStatus(status);
  return FromGrpc(status);
}

std::optional<absl::Duration> Call::retry_after() const {
  if (!cancelled_.ok()) return std::nullopt;
  const auto& metadata = context_.GetServerTrailingMetadata();
  const auto found = metadata.find(kRetryAfterMetadata);
  if (found == metadata.end()) return std::nullopt;
  int64_t milliseconds = 0;
  const absl::string_view text(found->second.data(), found->second.size());
  if (!absl::SimpleAtoi(text, &milliseconds) || milliseconds < 0) return std::nullopt;
  return std::max(kMinWait, absl::Milliseconds(milliseconds));
}

absl::Status CallWithDeadline(const ConnectionOptions& options, OnRateLimit on_rate_limit,
                              absl::FunctionRef<Attempted(absl::Time deadline)> attempt) {
  const Stopwatch waited;
  while (true) {
    const auto [status, wait] = attempt(absl::Now() + options.deadline - waited.Elapsed());
    const bool repeat = on_rate_limit == OnRateLimit::kWait && absl::IsResourceExhausted(status);
    if (!repeat || !wait.has_value() || waited.Elapsed() + *wait >= options.deadline) return status;
    PM_RETURN_IF_ERROR(SleepUnlessCancelled(*wait, options.cancelled));
  }
}

absl::Status CheckSize(const char* field, const google::protobuf::MessageLite& message) {
  const size_t bytes = message.ByteSizeLong();
  if (bytes <= static_cast<size_t>(kMaxMessageBytes)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(field, " make a message of ", bytes,
                                                   " bytes, expected at most ", kMaxMessageBytes));
}

absl::Status FinishCall(const ConnectionOptions& options, Call* call) {
  const absl::Status status = call->Finish();
  // A message of the server itself, about its store, a collection or a shard, is no error of the
  // connection.
  const bool is_said =
      (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) && call->is_own_status();
  return call->cancelled() || is_said ? status : ExplainConnectionError(options, status);
}

}  // namespace privatemail::client
