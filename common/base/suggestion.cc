#include "common/base/suggestion.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace privatemail {
namespace {

// The optimal string alignment distance: characters to insert, delete, replace or swap with their
// neighbour.
size_t EditDistance(absl::string_view from, absl::string_view to) {
  std::vector<std::vector<size_t>> edits(from.size() + 1, std::vector<size_t>(to.size() + 1));
  for (size_t i = 0; i <= from.size(); ++i) {
    for (size_t j = 0; j <= to.size(); ++j) {
      edits[i][j] = std::max(i, j);
      if (i == 0 || j == 0) continue;
      const size_t replaced = edits[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
      }
    }
  }
  return edits.back().back();
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
  std::vector<std::string> nearest, longer;
  constexpr size_t kBeginning = 3;  // shorter words begin too many others
  for (const std::string& candidate : candidates) {
    const std::string word = candidate.substr(candidate.rfind(' ') + 1);
    if (mistyped.size() >= kBeginning && absl::StartsWith(word, mistyped)) {
      longer.push_back(candidate);
    }
    if (mistyped.size() > word.size() + best) continue;  // the distance would be larger
    const size_t distance = EditDistance(mistyped, word);
    if (distance > best) continue;
    if (distance < best) nearest.clear();
    best = distance;
    nearest.push_back(candidate);
  }
  const bool is_near = !nearest.empty() && best <= 1;
  return DidYouMean(longer.empty() || is_near ? nearest : longer);
}

}  // namespace privatemail
