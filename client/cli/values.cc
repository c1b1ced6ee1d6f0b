#include "client/cli/values.h"

#include <map>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/input_file.h"
#include "common/base/status_macros.h"
#include "common/base/validate.h"

namespace privatemail::client::cli {
namespace {

constexpr absl::Duration kMaxLifetime = absl::Hours(24 * 36'525);

// "30d", "12h" or "90m".
std::optional<absl::Duration> Span(absl::string_view text) {
  static const std::map<char, absl::Duration> kUnits = {
      {'m', absl::Minutes(1)}, {'h', absl::Hours(1)}, {'d', absl::Hours(24)}};
  int64_t count = 0;
  if (text.size() < 2 || !absl::ascii_isdigit(text[0])) return std::nullopt;
  const auto unit = kUnits.find(text.back());
  text.remove_suffix(1);
  if (unit == kUnits.end() || !absl::SimpleAtoi(text, &count)) return std::nullopt;
  return count * unit->second;
}

std::optional<absl::Time> Moment(absl::string_view text) {
  absl::Time time;
  std::string ignored;
  const bool found = absl::ParseTime("%Y-%m-%d", text, &time, &ignored) ||
                     absl::ParseTime(absl::RFC3339_full, text, &time, &ignored);
  return found ? std::optional(time) : std::nullopt;
}

// "7" or "3-9"; a leading '-' is a sign.
std::optional<std::pair<int64_t, int64_t>> RangeFrom(absl::string_view text) {
  const size_t dash = text.find('-', 1);
  int64_t first = 0, last = 0;
  if (!absl::SimpleAtoi(text.substr(0, dash), &first)) return std::nullopt;
  if (dash == absl::string_view::npos) return std::pair(first, first);
  if (!absl::SimpleAtoi(text.substr(dash + 1), &last) || last < first) return std::nullopt;
  return std::pair(first, last);
}

}  // namespace

absl::StatusOr<absl::Time> ParseExpiry(absl::string_view flag, absl::string_view text,
                                       absl::Time now) {
  const std::optional<absl::Duration> span = Span(text);
  const std::optional<absl::Time> end = span ? now + *span : Moment(text);
  if (end && *end > now && *end <= now + kMaxLifetime) return *end;
  return absl::InvalidArgumentError(absl::StrCat(
      flag,
      " must be a future time within a hundred years, such as 30d, 12h, 90m, 2027-01-31 or "
      "2027-01-31T12:00:00Z, but is \"",
      text, "\""));
}

absl::StatusOr<std::vector<std::string>> ReadLines(absl::string_view flag,
                                                   const std::string& path) {
  const absl::StatusOr<InputFile> file = InputFile::Open(path);
  if (!file.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " cannot be read: ", file.status().message()));
  }
  absl::string_view text = file->bytes();
  PM_RETURN_IF_ERROR(SkipByteOrderMark(absl::StrCat(flag, " ", path), &text));
  if (absl::StartsWith(text, "\x93NUMPY")) {
    return absl::InvalidArgumentError(absl::StrCat(
        flag, " must be a text file of one value a line, but ", path, " is a numpy array"));
  }
  absl::ConsumeSuffix(&text, "\n");
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    lines.emplace_back(absl::StripSuffix(line, "\r"));
  }
  return lines;
}

absl::StatusOr<RowSelection> RowSelection::Parse(absl::string_view flag,
                                                 const std::vector<std::string>& words) {
  RowSelection rows;
  if (words == std::vector<std::string>{"all"}) {
    rows.all_ = true;
    return rows;
  }
  for (const std::string& word : words) {
    for (const absl::string_view text : absl::StrSplit(word, ',')) {
      const auto range = RangeFrom(text);
      if (!range) {
        return absl::InvalidArgumentError(absl::StrCat(
            flag, " must be rows such as 7, 0-9, 3,7,9-12 or all, but has \"", text, "\""));
      }
      rows.ranges_.push_back(*range);
    }
  }
  return rows;
}

absl::StatusOr<std::vector<int64_t>> RowSelection::Of(absl::string_view flag, int64_t count) const {
  std::vector<std::pair<int64_t, int64_t>> ranges = ranges_;
  if (ranges.empty() && count > 0) ranges.emplace_back(0, count - 1);
  std::vector<int64_t> rows;
  for (const auto& [first, last] : ranges) {
    PM_RETURN_IF_ERROR(CheckIntegerBetween(flag, first, 0, count - 1));
    PM_RETURN_IF_ERROR(CheckIntegerBetween(flag, last, 0, count - 1));
    if (last - first >= kMaxRows - std::ssize(rows)) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " must select at most ", kMaxRows, " rows, but selects more"));
    }
    for (int64_t row = first; row <= last; ++row) rows.push_back(row);
  }
  return rows;
}

}  // namespace privatemail::client::cli
