#include "common/base/printable.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace privatemail {
namespace {

unsigned char ByteAt(absl::string_view text, size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

// Bytes of the control character that begins here; 0 when none does.
size_t ControlCharacterAt(absl::string_view text, size_t at) {
  const unsigned char byte = ByteAt(text, at);
  if (byte < 0x20 || byte == 0x7f) return 1;
  const unsigned char next = ByteAt(text, at + 1);
  return byte == 0xc2 && next >= 0x80 && next < 0xa0 ? 2 : 0;  // U+0080 to U+009F
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t control = ControlCharacterAt(text, at);
    if (control > 0) {
      safe += absl::CHexEscape(text.substr(at, control));
      at += control;
    } else {
      safe += text[at++];
    }
  }
  return safe;
}

std::string Shortened(absl::string_view text, size_t most) {
  constexpr absl::string_view kMore = "...";
  if (text.size() <= most) return std::string(text);
  size_t kept = most - kMore.size();
  // Back to where a character begins; text that is not UTF-8 has no such place near.
  constexpr size_t kLongestCharacter = 4;
  for (size_t back = 0; back < kLongestCharacter && back <= kept; ++back) {
    if ((ByteAt(text, kept - back) & 0xc0) == 0x80) continue;
    kept -= back;
    break;
  }
  return absl::StrCat(text.substr(0, kept), kMore);
}

}  // namespace privatemail
