#include "common/base/printable.h"

#include "absl/strings/escaping.h"

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

}  // namespace privatemail
