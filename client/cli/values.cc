#include "client/cli/values.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace privatemail::client::cli {
namespace {

constexpr absl::Duration kFarthest = absl::Hours(24 * 36'525);

std::optional<absl::Duration> UnitNamed(char name) {
  if (name == 'm') return absl::Minutes(1);
  if (name == 'h') return absl::Hours(1);
  if (name == 'd') return absl::Hours(24);
  return std::nullopt;
}

std::optional<absl::Duration> Span(absl::string_view text) {
  int64_t count = 0;
  if (text.size() < 2 || !absl::ascii_isdigit(text[0])) return std::nullopt;
  const std::optional<absl::Duration> unit = UnitNamed(text.back());
  if (!unit || !absl::SimpleAtoi(text.substr(0, text.size() - 1), &count)) return std::nullopt;
  return count * *unit;
}

std::optional<absl::Time> Moment(absl::string_view text) {
  absl::Time time;
  std::string ignored;
  const bool found = absl::ParseTime("%Y-%m-%d", text, &time, &ignored) ||
                     absl::ParseTime(absl::RFC3339_full, text, &time, &ignored);
  return found ? std::optional(time) : std::nullopt;
}

}  // namespace

absl::StatusOr<absl::Time> ParseExpiry(absl::string_view flag, absl::string_view text,
                                       absl::Time now) {
  const std::optional<absl::Duration> span = Span(text);
  const std::optional<absl::Time> end = span ? now + *span : Moment(text);
  if (end && *end > now && *end <= now + kFarthest) return *end;
  return absl::InvalidArgumentError(absl::StrCat(
      flag,
      " must be a time to come within a hundred years, like 30d, 12h, 90m, 2027-01-31 or "
      "2027-01-31T12:00:00Z, but is \"",
      text, "\""));
}

}  // namespace privatemail::client::cli
