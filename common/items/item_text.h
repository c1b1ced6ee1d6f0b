// Validation of the texts of an item, the same on both sides.
#ifndef PRIVATEMAIL_COMMON_ITEMS_ITEM_TEXT_H_
#define PRIVATEMAIL_COMMON_ITEMS_ITEM_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace privatemail {

// Maximum nesting of arrays and objects in a payload: recursive JSON parsers would exhaust their
// stacks on deeper ones.
inline constexpr int kMaxPayloadDepth = 64;

inline constexpr size_t kMaxItemIdBytes = 512;

bool IsUtf8(const std::string& text);

// INVALID_ARGUMENT unless the payload is empty or JSON nested at most kMaxPayloadDepth deep. The
// message does not repeat the payload.
absl::Status CheckPayload(const std::string& payload);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_ITEMS_ITEM_TEXT_H_
