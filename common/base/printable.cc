#include "common/base/printable.h"

#include <charconv>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace privatemail {
namespace {

unsigned char ByteAt(absl::string_view text, size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

// Bidirectional controls and separators: U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069.
// second, third: the last two of the three bytes.
bool IsBidiOrSeparator(unsigned char second, unsigned char third) {
  if (second == 0x80) return third == 0x8e || third == 0x8f || (third >= 0xa8 && third <= 0xae);
  return second == 0x81 && third >= 0xa6 && third <= 0xa9;
}

// Bytes of the UTF-8 character at `at`, that of one byte included; 0 if there is none.
size_t CharacterBytes(absl::string_view text, size_t at) {
  const unsigned char byte = ByteAt(text, at);
  if (byte < 0x80) return 1;
  const size_t bytes = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
  if (byte < 0xc2 || byte > 0xf4) return 0;
  for (size_t next = 1; next < bytes; ++next) {
    if ((ByteAt(text, at + next) & 0xc0) != 0x80) return 0;
  }
  return bytes;
}

// Bytes of the control character, or the byte that is no UTF-8, at `at`; 0 if there is none.
size_t ControlCharacterBytes(absl::string_view text, size_t at) {
  const unsigned char byte = ByteAt(text, at);
  if (byte < 0x20 || byte == 0x7f || CharacterBytes(text, at) == 0) return 1;
  const unsigned char next = ByteAt(text, at + 1);
  if (byte == 0xc2) return next >= 0x80 && next < 0xa0 ? 2 : 0;  // U+0080 to U+009F
  if (byte == 0xd8) return next == 0x9c ? 2 : 0;                 // U+061C, bidirectional
  return byte == 0xe2 && IsBidiOrSeparator(next, ByteAt(text, at + 2)) ? 3 : 0;
}

template <typename Number>
std::string Shortest(Number number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), number).ptr);
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t control = ControlCharacterBytes(text, at);
    if (control > 0) {
      safe += absl::CHexEscape(text.substr(at, control));
      at += control;
    } else {
      const size_t bytes = CharacterBytes(text, at);
      safe.append(text.data() + at, bytes);
      at += bytes;
    }
  }
  return safe;
}

std::string TruncateUtf8(absl::string_view text, size_t max_bytes) {
  constexpr absl::string_view kMore = "...";
  if (text.size() <= max_bytes) return std::string(text);
  size_t kept = max_bytes - kMore.size();
  // Step back to the start of a character, if the text is UTF-8.
  constexpr size_t kMaxCharacterBytes = 4;
  for (size_t back = 0; back < kMaxCharacterBytes && back <= kept; ++back) {
    if ((ByteAt(text, kept - back) & 0xc0) == 0x80) continue;
    kept -= back;
    break;
  }
  return absl::StrCat(text.substr(0, kept), kMore);
}

std::string FormatExact(double number) { return Shortest(number); }
std::string FormatExact(float number) { return Shortest(number); }

std::string FormatShare(double share) {
  constexpr int kFewDigits = 2;
  for (int digits = kFewDigits;; ++digits) {
    char text[32];
    const std::string shown(
        text,
        std::to_chars(text, text + sizeof(text), share, std::chars_format::general, digits).ptr);
    if (shown != "1" || !(share < 1)) return shown;
  }
}

}  // namespace privatemail
