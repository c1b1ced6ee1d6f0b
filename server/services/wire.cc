#include "server/services/wire.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include "absl/strings/str_cat.h"

namespace privatemail {

absl::Status Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  grpc::ByteBuffer shared(bytes);  // the reader would take the slices away
  grpc::ProtoBufferReader reader(&shared);
  if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("message must be a ", message->GetDescriptor()->full_name(), ", but its ",
                   bytes.Length(), " bytes cannot be parsed as one"));
}

grpc::ByteBuffer ToWire(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace privatemail
