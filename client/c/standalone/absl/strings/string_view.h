// A stand-in for Abseil's string_view.h; see ../status/status.h.
#ifndef PRIVATEMAIL_STANDALONE_ABSL_STRINGS_STRING_VIEW_H_
#define PRIVATEMAIL_STANDALONE_ABSL_STRINGS_STRING_VIEW_H_

#include <string_view>

namespace absl {
using std::string_view;
}  // namespace absl

#endif  // PRIVATEMAIL_STANDALONE_ABSL_STRINGS_STRING_VIEW_H_
