#include "server/services/call.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/parse_message.h"

namespace privatemail::server {
namespace {

constexpr size_t kMaxQuotedNameBytes = 64;  // a peer may send a name of any length

}  // namespace

Bytes ToByteBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return Bytes(&slice, 1);
}

Bytes ToByteBuffer(std::shared_ptr<const std::string> bytes) {
  using Owner = std::shared_ptr<const std::string>;
  auto owner = std::make_unique<Owner>(std::move(bytes));
  const std::string& held = **owner;
  const auto release = [](void* held_owner) { delete static_cast<Owner*>(held_owner); };
  // gRPC never writes into a slice, so the const_cast is safe.
  const grpc::Slice slice(const_cast<char*>(held.data()), held.size(), release, owner.release());
  return Bytes(&slice, 1);
}

absl::Status Call::Parse(const Bytes& bytes, google::protobuf::Message* message) {
  parsed_.Release();
  const auto admit = [&](int64_t memory) -> absl::Status {
    PM_RETURN_IF_ERROR(CheckLimit("memory of the message in bytes", memory,
                                  limits().max_request_memory, "max_request_memory"));
    return parsed_.TakeForKey(memory, limits().max_parsed_memory, key_ == nullptr ? "" : key_->id);
  };
  return ParseMessage(bytes, admit, message);
}

absl::Status Call::CheckAccess(const google::protobuf::Message& message) {
  request_bytes_ += message.ByteSizeLong();
  if (dependencies_.rpc.collection[0] == '\0') return absl::OkStatus();
  const std::string name = GetCollectionName(message, dependencies_.rpc);
  PM_RETURN_IF_ERROR(CheckNotEmpty(dependencies_.rpc.collection, name));
  return CheckCollectionAccess(name);
}

absl::Status Call::CheckCollectionAccess(absl::string_view name) {
  collection_ = std::string(name);
  if (key_ == nullptr) return key_error_;
  if (key_->Covers(name)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("key ", key_->id, " is not for collection '",
                   absl::CHexEscape(name.substr(0, kMaxQuotedNameBytes)), "'"));
}

bool Call::AwaitCaller(IdleCalls::For what, absl::FunctionRef<bool()> wait) {
  if (!stream_error_.ok()) return false;
  IdleCalls::Watch watch(dependencies_.idle, dependencies_.context, what,
                         limits().stream_idle_seconds);
  const bool done = wait();
  stream_error_ = watch.End();
  if (stream_error_.ok() && dependencies_.keys != nullptr && key_ != nullptr) {
    stream_error_ = dependencies_.keys->CheckValid(key_->id, absl::Now());
  }
  return done && stream_error_.ok();
}

absl::Status Call::StreamStatus() const {
  PM_RETURN_IF_ERROR(stream_error_);
  if (Cancelled()) return absl::CancelledError("the caller broke the stream off");
  return absl::OkStatus();
}

}  // namespace privatemail::server
