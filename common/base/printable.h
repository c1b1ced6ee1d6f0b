// Text for messages and logs: escaped, truncated, and numbers without loss of digits.
#ifndef PRIVATEMAIL_COMMON_BASE_PRINTABLE_H_
#define PRIVATEMAIL_COMMON_BASE_PRINTABLE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace privatemail {

// `text` with control characters escaped ("\x1b", "\n"), so that a peer's text cannot steer a
// terminal, begin a log line or reverse what follows. Escaped:
// - ASCII control characters and DEL
// - C1 controls, line and paragraph separators, bidirectional controls (as UTF-8)
// - bytes that are no UTF-8, which an 8-bit terminal takes for C1 controls
std::string Printable(absl::string_view text);

// `text` cut to at most `max_bytes` (>= 3) bytes, ending in "..." if cut. UTF-8 characters stay
// whole.
std::string TruncateUtf8(absl::string_view text, size_t max_bytes);

// The shortest text that reads back as the same number: "0.1", "3.7306316348144531". Rounded, a
// noise or radius could look smaller than it is.
std::string FormatExact(double number);
std::string FormatExact(float number);

// A share or probability in two digits, or as many as it takes not to show one below 1 as 1:
// "0.85", "0.9996".
std::string FormatShare(double share);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_PRINTABLE_H_
