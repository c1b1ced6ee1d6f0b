// Estimation of the memory of a protobuf message before it is parsed.
#ifndef PRIVATEMAIL_COMMON_WIRE_MESSAGE_MEMORY_H_
#define PRIVATEMAIL_COMMON_WIRE_MESSAGE_MEMORY_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <optional>

namespace privatemail {

// An upper estimate in bytes of the memory of a parsed message of this type. Reads `bytes` to the
// end without building the message. The wire size is no measure: an empty text or message takes two
// bytes on the wire and about a hundred in memory. nullopt: not a valid message, as far as that is
// visible without parsing it.
std::optional<int64_t> MessageMemory(const google::protobuf::Descriptor& type,
                                     google::protobuf::io::ZeroCopyInputStream* bytes);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_MESSAGE_MEMORY_H_
