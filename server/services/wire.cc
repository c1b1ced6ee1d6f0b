#include "server/services/wire.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/wire/message_memory.h"

namespace privatemail::server {

namespace {

absl::Status NoMessage(const grpc::ByteBuffer& bytes, const google::protobuf::Descriptor& type) {
  return absl::InvalidArgumentError(absl::StrCat("message must be a ", type.full_name(),
                                                 ", but its ", bytes.Length(),
                                                 " bytes cannot be parsed as one"));
}

}  // namespace

absl::Status Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  grpc::ByteBuffer shared(bytes);  // the reader would take the slices away
  grpc::ProtoBufferReader reader(&shared);
  if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) return absl::OkStatus();
  return NoMessage(bytes, *message->GetDescriptor());
}

absl::StatusOr<int64_t> MemoryOfParsed(const grpc::ByteBuffer& bytes,
                                       const google::protobuf::Descriptor& type) {
  grpc::ByteBuffer shared(bytes);
  grpc::ProtoBufferReader reader(&shared);
  if (!reader.status().ok()) return NoMessage(bytes, type);
  const std::optional<int64_t> memory = MessageMemory(type, &reader);
  return memory.has_value() ? absl::StatusOr<int64_t>(*memory) : NoMessage(bytes, type);
}

grpc::ByteBuffer ToWire(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer ToWire(std::shared_ptr<const std::string> bytes) {
  using Owner = std::shared_ptr<const std::string>;
  auto owner = std::make_unique<Owner>(std::move(bytes));
  const std::string& held = **owner;
  const auto let_go = [](void* one) { delete static_cast<Owner*>(one); };
  // gRPC writes into no slice; its own static ones are constant, too.
  const grpc::Slice slice(const_cast<char*>(held.data()), held.size(), let_go, owner.release());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace privatemail::server
