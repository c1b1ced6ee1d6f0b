#include "common/rpc/parse_message.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/wire/message_memory.h"

namespace privatemail {

absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          absl::FunctionRef<absl::Status(int64_t memory)> admit,
                          google::protobuf::Message* message) {
  // Whether `use` takes the bytes.
  const auto read = [&](absl::FunctionRef<bool(grpc::ProtoBufferReader*)> use) {
    grpc::ByteBuffer shared(bytes);  // the reader consumes its buffer
    grpc::ProtoBufferReader reader(&shared);
    return reader.status().ok() && use(&reader);
  };
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  std::optional<int64_t> memory;
  if (read([&](auto* reader) { return (memory = MessageMemory(type, reader)).has_value(); })) {
    PM_RETURN_IF_ERROR(admit(*memory));
    if (read([&](auto* reader) { return message->ParseFromZeroCopyStream(reader); })) {
      return absl::OkStatus();
    }
  }
  return InvalidField("message", absl::StrCat("must be a ", type.full_name(), ", but its ",
                                              bytes.Length(), " bytes cannot be parsed as one"));
}

}  // namespace privatemail
