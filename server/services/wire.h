// Messages as they come over the wire.
#ifndef PRIVATEMAIL_SERVER_SERVICES_WIRE_H_
#define PRIVATEMAIL_SERVER_SERVICES_WIRE_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace privatemail::server {

// INVALID_ARGUMENT: the bytes are no such message; strings that are not UTF-8 are none. gRPC, left
// to parse by itself, would answer UNIMPLEMENTED without a word, past every log, and end a stream
// as if it were complete.
absl::Status Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message);

// What the message takes once it is parsed, about (message_memory.h). Errors as Parse.
absl::StatusOr<int64_t> MemoryOfParsed(const grpc::ByteBuffer& bytes,
                                       const google::protobuf::Descriptor& type);

grpc::ByteBuffer ToWire(const std::string& bytes);
// Holds them instead of a copy.
grpc::ByteBuffer ToWire(std::shared_ptr<const std::string> bytes);

// A generated service whose methods take and give bytes: <Service, A, B> is A<B<Service>>.
template <typename Service, template <typename> class... Methods>
struct BytesServiceOf {
  using Type = Service;
};
template <typename Service, template <typename> class First, template <typename> class... Others>
struct BytesServiceOf<Service, First, Others...> {
  using Type = First<typename BytesServiceOf<Service, Others...>::Type>;
};
template <typename Service, template <typename> class... Methods>
using BytesService = typename BytesServiceOf<Service, Methods...>::Type;

}  // namespace privatemail::server

#endif  // PRIVATEMAIL_SERVER_SERVICES_WIRE_H_
