// Messages as they come over the wire.
#ifndef PRIVATEMAIL_SERVER_SERVICES_WIRE_H_
#define PRIVATEMAIL_SERVER_SERVICES_WIRE_H_

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "absl/status/status.h"

namespace privatemail {

// INVALID_ARGUMENT: the bytes are no such message; strings that are not UTF-8 are none. gRPC, left
// to parse by itself, would answer UNIMPLEMENTED without a word, and end a stream as if it were
// complete.
absl::Status Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message);

grpc::ByteBuffer ToWire(const std::string& bytes);

}  // namespace privatemail

#endif  // PRIVATEMAIL_SERVER_SERVICES_WIRE_H_
