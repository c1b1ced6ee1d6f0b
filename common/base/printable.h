// Text of a peer's on its way to a terminal or a log.
#ifndef PRIVATEMAIL_COMMON_BASE_PRINTABLE_H_
#define PRIVATEMAIL_COMMON_BASE_PRINTABLE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace privatemail {

// `text` with every control character (ASCII's, DEL, and in UTF-8 the C1 set, line and paragraph
// separators and what turns the direction of writing) as an escape such as "\x1b" or "\n": whoever
// chose the text can neither steer a terminal nor begin a line of its own nor reverse what follows.
// All else stays as it is, quotes too, which would only make messages hard to read.
std::string Printable(absl::string_view text);

// `text`, or where it is longer its beginning and "...": `most` bytes at most, three or more. No
// character of UTF-8 is cut in two.
std::string Shortened(absl::string_view text, size_t most);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_PRINTABLE_H_
