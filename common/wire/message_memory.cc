#include "common/wire/message_memory.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace privatemail {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Estimated bytes.
constexpr int64_t kEntry = 32;   // of a list, with spare capacity
constexpr int64_t kObject = 64;  // a string or message with its allocation
constexpr int64_t kField = 24;   // a field of a message

int64_t EmptyMessage(const Descriptor& type) { return kObject + kField * type.field_count(); }

// Memory of a packed list per wire byte: a varint of one byte takes four or eight bytes, and the
// list grows by doubling.
int64_t PerByte(const FieldDescriptor& field) {
  const auto type = static_cast<WireFormatLite::FieldType>(field.type());
  const bool has_varints =
      WireFormatLite::WireTypeForFieldType(type) == WireFormatLite::WIRETYPE_VARINT;
  if (!has_varints) return 1;
  const bool is_wide = field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
                       field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
  return is_wide ? 16 : 8;
}

bool AddFields(const Descriptor& type, CodedInputStream* in, int64_t* memory);

// field: null for an unknown field, which is stored as raw bytes.
bool AddLengthDelimited(const FieldDescriptor* field, CodedInputStream* in, int64_t* memory) {
  uint32_t length = 0;
  if (!in->ReadVarint32(&length)) return false;
  *memory += kEntry;
  if (field == nullptr || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    *memory += kObject + (field == nullptr ? 1 : PerByte(*field)) * int64_t{length};
    return in->Skip(static_cast<int>(length));
  }
  *memory += EmptyMessage(*field->message_type());
  const auto [limit, depth_left] =
      in->IncrementRecursionDepthAndPushLimit(static_cast<int>(length));
  return depth_left >= 0 && AddFields(*field->message_type(), in, memory) &&
         in->DecrementRecursionDepthAndPopLimit(limit);
}

bool AddFields(const Descriptor& type, CodedInputStream* in, int64_t* memory) {
  while (const uint32_t tag = in->ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      if (!AddLengthDelimited(type.FindFieldByNumber(number), in, memory)) return false;
      continue;
    }
    const int before = in->CurrentPosition();
    if (!WireFormatLite::SkipField(in, tag)) return false;
    // An unknown group is stored field by field; no known message has one.
    *memory += kEntry * (1 + in->CurrentPosition() - before);
  }
  return in->ConsumedEntireMessage();
}

}  // namespace

std::optional<int64_t> MessageMemory(const Descriptor& type,
                                     google::protobuf::io::ZeroCopyInputStream* bytes) {
  CodedInputStream in(bytes);
  int64_t memory = EmptyMessage(type);
  if (!AddFields(type, &in, &memory)) return std::nullopt;
  return memory;
}

}  // namespace privatemail
