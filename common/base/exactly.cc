#include "common/base/exactly.h"

#include <charconv>

namespace privatemail {

std::string Exactly(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), number).ptr);
}

}  // namespace privatemail
