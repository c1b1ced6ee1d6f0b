// Protobuf's wire format without generated code, for libraries that link no protobuf.
#ifndef PRIVATEMAIL_COMMON_WIRE_WIRE_FORMAT_H_
#define PRIVATEMAIL_COMMON_WIRE_WIRE_FORMAT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace privatemail {

// Reads the fields of a message of a peer in order. Copies nothing. Groups are malformed.
class WireReader {
 public:
  enum Type { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  explicit WireReader(absl::string_view message) : left_(message) {}

  // False: at the end of the message, or malformed (ok).
  bool Next();
  bool ok() const { return ok_; }

  // Whether the field has this number and type. Others are to be ignored.
  bool Is(uint32_t field, Type type) const { return field_ == field && type_ == type; }
  uint64_t value() const { return value_; }           // of kVarint, kFixed64 and kFixed32
  absl::string_view bytes() const { return bytes_; }  // of kBytes

  // The elements of a repeated number, which may also be packed: calls add with each as Next would
  // read it. False: the field is not this one.
  template <typename Add>
  bool Elements(uint32_t field, Type type, Add add) {
    if (Is(field, type)) return add(value_), true;
    if (!Is(field, kBytes)) return false;
    WireReader elements(bytes_);
    while (!elements.left_.empty() && (ok_ = ok_ && elements.ReadValue(type))) add(elements.value_);
    return true;
  }

 private:
  bool ReadVarint(uint64_t* value);
  bool ReadValue(int type);

  absl::string_view left_;
  bool ok_ = true;
  uint32_t field_ = 0;
  int type_ = 0;
  uint64_t value_ = 0;
  absl::string_view bytes_;
};

// Appends fields of a message. Numbers that are 0 are left out, as proto3 has it.
class WireWriter {
 public:
  void AddNumber(uint32_t field, uint64_t value);
  void AddBytes(uint32_t field, absl::string_view bytes);

  std::string message;

 private:
  void AddVarint(uint64_t value);
};

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_WIRE_FORMAT_H_
