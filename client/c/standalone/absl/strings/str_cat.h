// A stand-in for Abseil's str_cat.h; see ../status/status.h.
#ifndef PRIVATEMAIL_STANDALONE_ABSL_STRINGS_STR_CAT_H_
#define PRIVATEMAIL_STANDALONE_ABSL_STRINGS_STR_CAT_H_

#include <cstdio>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace absl {

template <typename Part>
void StrAppend(std::string* text, const Part& part) {
  if constexpr (std::is_floating_point_v<Part>) {
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%g", static_cast<double>(part));
    *text += digits;
  } else if constexpr (std::is_arithmetic_v<Part>) {
    *text += std::to_string(part);
  } else {
    *text += string_view(part);
  }
}

template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  std::string text;
  (StrAppend(&text, parts), ...);
  return text;
}

}  // namespace absl

#endif  // PRIVATEMAIL_STANDALONE_ABSL_STRINGS_STR_CAT_H_
