// Parsing of messages of a peer, held against a memory limit before anything is allocated.
#ifndef PRIVATEMAIL_COMMON_RPC_PARSE_MESSAGE_H_
#define PRIVATEMAIL_COMMON_RPC_PARSE_MESSAGE_H_

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace privatemail {

// Parses `bytes` into `message`.
// - admit: called first, with the estimated memory in bytes of the parsed message
//   (message_memory.h); its error is returned, and nothing is parsed.
// - INVALID_ARGUMENT: `bytes` are not such a message, or a string in it is not UTF-8.
absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          absl::FunctionRef<absl::Status(int64_t memory)> admit,
                          google::protobuf::Message* message);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_RPC_PARSE_MESSAGE_H_
