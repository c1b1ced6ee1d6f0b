#include "common/base/suggestion.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace privatemail {
namespace {

// The Levenshtein distance: characters to insert, delete or replace.
size_t EditDistance(absl::string_view from, absl::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

}  // namespace

std::string DidYouMean(const std::vector<std::string>& names) {
  constexpr size_t kMaxShown = 3;
  std::vector<std::string> quoted;
  for (size_t i = 0; i < std::min(names.size(), kMaxShown); ++i) {
    quoted.push_back(absl::StrCat("\"", names[i], "\""));
  }
  return quoted.empty() ? "" : absl::StrCat("; did you mean ", absl::StrJoin(quoted, " or "), "?");
}

std::string Suggestion(absl::string_view mistyped, const std::vector<std::string>& candidates) {
  size_t best = std::max<size_t>(2, mistyped.size() / 3);
  std::vector<std::string> nearest;
  for (const std::string& candidate : candidates) {
    const std::string word = candidate.substr(candidate.rfind(' ') + 1);
    const bool is_swapped =
        std::is_permutation(mistyped.begin(), mistyped.end(), word.begin(), word.end());
    const size_t distance = is_swapped ? 1 : EditDistance(mistyped, word);
    if (distance > best) continue;
    if (distance < best) nearest.clear();
    best = distance;
    nearest.push_back(candidate);
  }
  return DidYouMean(nearest);
}

}  // namespace privatemail
