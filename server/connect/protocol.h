// The parts of the Connect protocol (https://connectrpc.com/docs/protocol) that need no connection.
#ifndef PRIVATEMAIL_SERVER_CONNECT_PROTOCOL_H_
#define PRIVATEMAIL_SERVER_CONNECT_PROTOCOL_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace privatemail::server {

// How the body of a request and its response are encoded.
struct Codec {
  bool json = false;       // otherwise protobuf's binary form
  bool enveloped = false;  // a stream of messages, otherwise one bare message
};

// nullopt: not one of the protocol's four content types. Parameters such as a charset are ignored.
std::optional<Codec> ParseContentType(absl::string_view text);
const char* ContentTypeOf(Codec codec);

// Whether an RPC can be called so. Bare messages also serve streams of requests, as one of a single
// message, so that tools without envelopes can upload; the protocol leaves that open.
bool Fits(Codec codec, const google::protobuf::MethodDescriptor& method);

// Connect-Timeout-Ms. INVALID_ARGUMENT: not an integer of 1 to 10 digits.
absl::StatusOr<absl::Duration> ParseTimeout(absl::string_view text);

// The HTTP status of a response that is a failure, and its body: {"code":..,"message":..}.
int HttpStatusOf(const grpc::Status& status);
std::string ErrorJson(const grpc::Status& status);

// The last message of a stream. retry_after_ms: empty, or the value of that trailing metadata.
std::string EndStreamJson(const grpc::Status& status, const std::string& retry_after_ms);

// The 5 bytes before each message of a stream.
inline constexpr size_t kEnvelopeBytes = 5;
inline constexpr uint8_t kEndStreamFlag = 2;
struct Envelope {
  uint8_t flags = 0;
  uint32_t size = 0;
};
std::string EncodeEnvelope(Envelope envelope);
Envelope DecodeEnvelope(const char (&bytes)[kEnvelopeBytes]);

// Conversions of a message between JSON and protobuf's binary form, without a message in memory.
// JSON of 4 MiB takes up to 40 MB and seconds. They end early, with an error, once `stopped`.
// RESOURCE_EXHAUSTED: the result exceeds `max_bytes`. INVALID_ARGUMENT: `json` is no such message;
// an unknown field is an error. INTERNAL: `bytes` are no such message.
absl::StatusOr<grpc::ByteBuffer> JsonToBinary(const google::protobuf::Descriptor& type,
                                              const grpc::ByteBuffer& json, int64_t max_bytes,
                                              const std::atomic<bool>& stopped);
absl::StatusOr<std::string> BinaryToJson(const google::protobuf::Descriptor& type,
                                         const grpc::ByteBuffer& bytes, int64_t max_bytes,
                                         const std::atomic<bool>& stopped);

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_CONNECT_PROTOCOL_H_
