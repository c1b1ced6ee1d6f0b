// The texts of an item: what either side refuses because the other could stumble over it.
#ifndef PRIVATEMAIL_COMMON_WIRE_ITEM_TEXT_H_
#define PRIVATEMAIL_COMMON_WIRE_ITEM_TEXT_H_

#include <string>

#include "absl/status/status.h"

namespace privatemail {

// Deepest nesting of arrays and objects in a payload. Programs that read JSON descend into it call
// by call: a text of a hundred thousand brackets would exhaust their stacks.
inline constexpr int kMaxPayloadDepth = 64;

bool IsUtf8(const std::string& text);

// OK for an empty text and for JSON that is nested at most kMaxPayloadDepth deep; otherwise
// INVALID_ARGUMENT, which never repeats the payload.
absl::Status CheckPayload(const std::string& payload);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_WIRE_ITEM_TEXT_H_
