// Suggestions for mistyped names of commands, options and settings.
#ifndef PRIVATEMAIL_COMMON_BASE_SUGGESTION_H_
#define PRIVATEMAIL_COMMON_BASE_SUGGESTION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace privatemail {

// "; did you mean \"collection list\" or \"key list\"?" of at most three names; empty for none.
std::string DidYouMean(const std::vector<std::string>& names);

// DidYouMean the candidates whose last words are a slip away from the mistyped one; else those that
// begin with it; else the most similar ones, if any is.
std::string Suggestion(absl::string_view mistyped, const std::vector<std::string>& candidates);

}  // namespace privatemail

#endif  // PRIVATEMAIL_COMMON_BASE_SUGGESTION_H_
