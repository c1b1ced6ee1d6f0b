#include "common/base/printable.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace privatemail {
namespace {

unsigned char ByteAt(absl::string_view text, size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

// Lines and paragraphs that end here, and writing that turns around: U+200E, U+200F, U+2028 to
// U+202E, U+2066 to U+2069. The bytes are the last two of three.
bool TurnsOrEndsALine(unsigned char second, unsigned char third) {
  if (second == 0x80) return third == 0x8e || third == 0x8f || (third >= 0xa8 && third <= 0xae);
  return second == 0x81 && third >= 0xa6 && third <= 0xa9;
}

// Bytes of the control character that begins here; 0 when none does.
size_t ControlCharacterAt(absl::string_view text, size_t at) {
  const unsigned char byte = ByteAt(text, at);
  if (byte < 0x20 || byte == 0x7f) return 1;
  const unsigned char next = ByteAt(text, at + 1);
  if (byte == 0xc2) return next >= 0x80 && next < 0xa0 ? 2 : 0;  // U+0080 to U+009F
  if (byte == 0xd8) return next == 0x9c ? 2 : 0;                 // U+061C, which turns as well
  return byte == 0xe2 && TurnsOrEndsALine(next, ByteAt(text, at + 2)) ? 3 : 0;
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
