#include "client/cli/values.h"

#include "absl/strings/str_split.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client::cli {
namespace {

using ::testing::ElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);  // 2027-01-15 08:00:00 UTC

int64_t Parsed(const char* text) {
  const auto time = ParseExpiry("--expires", text, kNow);
  EXPECT_THAT(time, IsOk()) << text;
  return time.ok() ? absl::ToUnixSeconds(*time) : 0;
}

TEST(Expiry, ParsesDurationsAndTimes) {
  EXPECT_EQ(Parsed("30d"), 1'800'000'000 + 30 * 86'400);
  EXPECT_EQ(Parsed("12h"), 1'800'000'000 + 12 * 3'600);
  EXPECT_EQ(Parsed("90m"), 1'800'000'000 + 90 * 60);
  EXPECT_EQ(Parsed("2027-01-31"), 1'801'353'600);            // date -d 2027-01-31Z +%s
  EXPECT_EQ(Parsed("2027-01-31T12:00:00Z"), 1'801'396'800);  // twelve hours later
  EXPECT_EQ(Parsed("2027-01-31T12:00:00+02:00"), 1'801'389'600);
}

TEST(Expiry, OtherFormsAndPastTimesAreRefused) {
  const std::vector<std::string> refused = absl::StrSplit(
      ",d,30,30s,-1d,+1d,0d,1.5d,d30,36526d,99999999999999999999d,2026-12-31,2027-01-15,"
      "2027-01-15T08:00:00Z,2027-13-01,2028-02-30,3000-01-01,tomorrow,infinite-future",
      ',');
  for (const std::string& text : refused) {
    EXPECT_THAT(ParseExpiry("--expires", text, kNow),
                FailsWith(kInvalid, "--expires must be a future time"))
        << text;
  }
}

absl::StatusOr<std::vector<int64_t>> Rows(const std::vector<std::string>& words, int64_t count) {
  const absl::StatusOr<RowSelection> rows = RowSelection::Parse("--rows", words);
  if (!rows.ok()) return rows.status();
  return rows->Of("--rows", count);
}

TEST(ReadLines, NumpyArrayIsRefused) {
  const TemporaryFolder folder;
  EXPECT_THAT(ReadLines("--ids", folder.Write("ids.npy", "\x93NUMPY\n")),
              FailsWith(absl::StatusCode::kInvalidArgument, "ids.npy is a numpy array"));
}

TEST(RowSelection, TakesRowsRangesAndAll) {
  EXPECT_THAT(Rows({"7"}, 10).value(), ElementsAre(7));
  EXPECT_THAT(Rows({"0-3"}, 10).value(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Rows({"3,7,8-9", "0"}, 10).value(), ElementsAre(3, 7, 8, 9, 0));
  EXPECT_THAT(Rows({"all"}, 3).value(), ElementsAre(0, 1, 2));
}

TEST(RowSelection, OtherFormsAndRowsOutsideAreRefused) {
  for (const char* text : {"", ",", "x", "1-", "3-1", "1.5", "1,,2", "1 2", "all,1", "1-2-3"}) {
    EXPECT_THAT(Rows({text}, 10), FailsWith(kInvalid, "--rows must be rows such as")) << text;
  }
  for (const char* text : {"-1", "10", "8-10", "0-9223372036854775807"}) {
    EXPECT_THAT(Rows({text}, 10), FailsWith(kInvalid, "--rows must be between 0 and 9")) << text;
  }
  EXPECT_THAT(Rows({"all"}, RowSelection::kMaxRows + 1), FailsWith(kInvalid, "at most 1048576"));
}

}  // namespace
}  // namespace privatemail::client::cli
