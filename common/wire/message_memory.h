// What a message takes once it is parsed, told from its bytes.
#ifndef PRIVATEMAIL_COMMON_WIRE_MESSAGE_MEMORY_H_
#define PRIVATEMAIL_COMMON_WIRE_MESSAGE_MEMORY_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <optional>

namespace privatemail {

// About how many bytes of memory a message of this type takes, rounded up; `bytes` hold it and are
// read to their end. It does not follow from their number: an empty text or an empty message takes
// two of them and some hundred in memory. Makes nothing of the message. Nothing: the bytes are no
// such message, as far as that shows without making it.
std::optional<int64_t> MessageMemory(const google::protobuf::Descriptor& type,
                                     google::protobuf::io::ZeroCopyInputStream* bytes);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_MESSAGE_MEMORY_H_
