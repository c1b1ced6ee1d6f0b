// Constants and helpers of the snapshot format (snapshot.h), internal to its reader and writer.
#ifndef PRIVATEMAIL_COMMON_WIRE_SNAPSHOT_LAYOUT_H_
#define PRIVATEMAIL_COMMON_WIRE_SNAPSHOT_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace privatemail::snapshot {

inline constexpr absl::string_view kMagic("\x89PMSNAP\n", 8);
inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kHeaderBytes = 12;

enum Type : uint8_t { kCollection = 1, kAnchors = 2, kItems = 3, kEnd = 4 };
inline constexpr size_t kHeadBytes = 9;
inline constexpr size_t kSumBytes = 16;

inline std::string NameOf(uint8_t type) {
  constexpr const char* kNames[] = {"collection", "anchors", "items", "end"};
  if (type >= kCollection && type <= kEnd) return kNames[type - kCollection];
  return absl::StrCat("of unknown type ", static_cast<int>(type));
}

inline void AppendInt(uint32_t value, std::string* bytes) {
  for (int shift = 0; shift < 32; shift += 8) bytes->push_back(static_cast<char>(value >> shift));
}

// Requires at least 4 bytes from `at` on.
inline uint32_t IntAt(absl::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

}  // namespace privatemail::snapshot

#endif  // PRIVATEMAIL_COMMON_WIRE_SNAPSHOT_LAYOUT_H_
