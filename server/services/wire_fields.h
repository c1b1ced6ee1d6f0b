// Protobuf wire-format primitives for hand-written encoders.
#ifndef PRIVATEMAIL_SERVER_SERVICES_WIRE_FIELDS_H_
#define PRIVATEMAIL_SERVER_SERVICES_WIRE_FIELDS_H_

#include <google/protobuf/io/coded_stream.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace privatemail::server::wire {

using Coded = google::protobuf::io::CodedOutputStream;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2 };

// The tag of a field number below 16, which is one byte on the wire.
constexpr uint32_t Tag(int field, WireType type) {
  return static_cast<uint32_t>(field) << 3 | type;
}

// Encoded size of a length-delimited field, tag and length included.
inline size_t DelimitedSize(size_t length) {
  return 1 + Coded::VarintSize32(static_cast<uint32_t>(length)) + length;
}

// Both write to `to` and return the end; the caller provides enough space.
inline uint8_t* BeginDelimited(uint32_t tag, size_t length, uint8_t* to) {
  *to++ = static_cast<uint8_t>(tag);
  return Coded::WriteVarint32ToArray(static_cast<uint32_t>(length), to);
}

inline uint8_t* WriteDelimited(uint32_t tag, absl::string_view content, uint8_t* to) {
  to = BeginDelimited(tag, content.size(), to);
  std::memcpy(to, content.data(), content.size());
  return to + content.size();
}

}  // namespace privatemail::server::wire

#endif  // PRIVATEMAIL_SERVER_SERVICES_WIRE_FIELDS_H_
