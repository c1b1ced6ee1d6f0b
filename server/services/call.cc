#include "server/services/call.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/services/request.h"
#include "server/services/wire.h"

namespace privatemail::server {
namespace {

constexpr size_t kNamedBytes = 64;  // of what a peer may send at any length

}  // namespace

absl::Status Call::Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  parsed_.GiveBack();
  PM_ASSIGN_OR_RETURN(const int64_t memory, MemoryOfParsed(bytes, *message->GetDescriptor()));
  PM_RETURN_IF_ERROR(CheckLimit("memory of the message in bytes", memory,
                                limits().max_request_memory, "max_request_memory"));
  PM_RETURN_IF_ERROR(parsed_.Take(memory, limits().max_parsed_memory));
  return server::Parse(bytes, message);
}

absl::Status Call::Admit(const google::protobuf::Message& message) {
  request_bytes_ += message.ByteSizeLong();
  if (parts_.rpc.collection[0] == '\0') return absl::OkStatus();
  const std::string name = CollectionNamedIn(message, parts_.rpc);
  PM_RETURN_IF_ERROR(CheckGiven(parts_.rpc.collection, name));
  return RequireCollection(name);
}

absl::Status Call::RequireCollection(absl::string_view name) {
  collection_ = std::string(name);
  if (key_ == nullptr) return key_error_;
  if (key_->Covers(name)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("key ", key_->id, " is not for collection '",
                                                  absl::CHexEscape(name.substr(0, kNamedBytes)),
                                                  "'"));
}

bool Call::Await(absl::FunctionRef<bool()> wait) {
  if (!ended_.ok()) return false;
  IdleCalls::Watch watch(parts_.idle, parts_.context, limits().stream_idle_seconds);
  const bool done = wait();
  if (watch.End()) {
    ended_ = IdleCalls::TimedOut(limits().stream_idle_seconds);
  } else if (parts_.keys != nullptr && key_ != nullptr) {
    ended_ = parts_.keys->CheckValid(key_->id, absl::Now());
  }
  return done && ended_.ok();
}

absl::Status Call::StreamStatus() const {
  PM_RETURN_IF_ERROR(ended_);
  if (Cancelled()) return absl::CancelledError("the caller broke the stream off");
  return absl::OkStatus();
}

}  // namespace privatemail::server
