#include "common/wire/wire_format.h"

#include <cstddef>

namespace privatemail {

bool WireReader::ReadVarint(uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 70 && !left_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(left_[0]);
    left_.remove_prefix(1);
    *value |= uint64_t{byte & 0x7fU} << shift;  // bits beyond 64 are dropped, as protobuf does
    if (byte < 0x80) return true;
  }
  return false;
}

bool WireReader::ReadValue(int type) {
  if (type == kVarint) return ReadVarint(&value_);
  if (type == kBytes) {
    uint64_t size = 0;
    if (!ReadVarint(&size) || size > left_.size()) return false;
    bytes_ = left_.substr(0, static_cast<size_t>(size));
    left_.remove_prefix(static_cast<size_t>(size));
    return true;
  }
  const size_t size = type == kFixed64 ? 8 : 4;
  if ((type != kFixed64 && type != kFixed32) || left_.size() < size) return false;
  value_ = 0;
  for (size_t byte = size; byte-- > 0;) {
    value_ = value_ << 8 | static_cast<unsigned char>(left_[byte]);
  }
  left_.remove_prefix(size);
  return true;
}

bool WireReader::Next() {
  if (!ok_ || left_.empty()) return false;
  uint64_t tag = 0;
  ok_ = ReadVarint(&tag) && tag >> 3 > 0 && tag >> 32 == 0;
  if (!ok_) return false;
  field_ = static_cast<uint32_t>(tag >> 3);
  type_ = static_cast<int>(tag & 7);
  return ok_ = ReadValue(type_);
}

void WireWriter::AddVarint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) message.push_back(static_cast<char>(value | 0x80));
  message.push_back(static_cast<char>(value));
}

void WireWriter::AddNumber(uint32_t field, uint64_t value) {
  if (value == 0) return;
  AddVarint(field << 3 | WireReader::kVarint);
  AddVarint(value);
}

void WireWriter::AddBytes(uint32_t field, absl::string_view bytes) {
  AddVarint(field << 3 | WireReader::kBytes);
  AddVarint(bytes.size());
  message.append(bytes.data(), bytes.size());
}

}  // namespace privatemail
