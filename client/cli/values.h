// Values as users type them: times, lines of files and selections of rows.
#ifndef PRIVATEMAIL_CLIENT_CLI_VALUES_H_
#define PRIVATEMAIL_CLIENT_CLI_VALUES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace privatemail::client::cli {

// "30d", "12h" or "90m" from `now` on; "2027-01-31", which begins at midnight UTC; or
// "2027-01-31T12:00:00Z" (RFC 3339).
// INVALID_ARGUMENT naming `flag`: another form, not after `now`, or over a hundred years away.
absl::StatusOr<absl::Time> ParseExpiry(absl::string_view flag, absl::string_view text,
                                       absl::Time now);

// The lines of a file or of standard input ("-"), without their "\n" or "\r\n" and without a
// byte-order mark. INVALID_ARGUMENT naming `flag`: it cannot be read, is empty or is UTF-16.
absl::StatusOr<std::vector<std::string>> ReadLines(absl::string_view flag, const std::string& path);

// Rows of a file: "7", "0-9", "3,7,9-12" or "all".
class RowSelection {
 public:
  // INVALID_ARGUMENT naming `flag`: another form, or a range that ends before it begins.
  static absl::StatusOr<RowSelection> Parse(absl::string_view flag,
                                            const std::vector<std::string>& words);

  bool empty() const { return !all_ && ranges_.empty(); }

  // The rows in the order given, of a file with `count` rows; all if none is given.
  // INVALID_ARGUMENT naming `flag`: a row outside of it, or more than kMaxRows rows.
  absl::StatusOr<std::vector<int64_t>> Of(absl::string_view flag, int64_t count) const;

  static constexpr int64_t kMaxRows = 1 << 20;

 private:
  bool all_ = false;
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // first and last row
};

}  // namespace privatemail::client::cli

#endif  // PRIVATEMAIL_CLIENT_CLI_VALUES_H_
