#include "common/rpc/parse_message.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/wire/message_memory.h"

namespace privatemail {
namespace {

absl::Status NotAMessage(const grpc::ByteBuffer& bytes, const google::protobuf::Descriptor& type) {
  return InvalidField("message", absl::StrCat("must be a ", type.full_name(), ", but its ",
                                              bytes.Length(), " bytes cannot be parsed as one"));
}

absl::StatusOr<int64_t> EstimateMemory(const grpc::ByteBuffer& bytes,
                                       const google::protobuf::Descriptor& type) {
  grpc::ByteBuffer shared(bytes);  // the reader consumes its buffer
  grpc::ProtoBufferReader reader(&shared);
  if (!reader.status().ok()) return NotAMessage(bytes, type);
  const std::optional<int64_t> memory = MessageMemory(type, &reader);
  return memory.has_value() ? absl::StatusOr<int64_t>(*memory) : NotAMessage(bytes, type);
}

}  // namespace

absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          absl::FunctionRef<absl::Status(int64_t memory)> admit,
                          google::protobuf::Message* message) {
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  PM_ASSIGN_OR_RETURN(const int64_t memory, EstimateMemory(bytes, type));
  PM_RETURN_IF_ERROR(admit(memory));
  grpc::ByteBuffer shared(bytes);  // the reader consumes its buffer
  grpc::ProtoBufferReader reader(&shared);
  if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) return absl::OkStatus();
  return NotAMessage(bytes, type);
}

}  // namespace privatemail
