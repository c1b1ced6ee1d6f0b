#include "client/search/batch.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"

namespace privatemail::client {
namespace {

const Guarantee kCost = {.epsilon = 1, .neighbours = "n", .proven = true, .source = "s"};

SearchResult ResultOf(const absl::Status& status, bool charged) {
  SearchResult result;
  result.target = "query 0";
  result.status = status;
  if (charged) result.guarantee = kCost;
  return result;
}

// Charged 1, 2 and 4 at a time; the server is gone at the fourth target.
TEST(FailureOf, EarlyEndSaysHowManyChargesWereNotUsed) {
  std::vector<SearchResult> results(3, ResultOf(absl::OkStatus(), true));
  results.push_back(ResultOf(absl::UnavailableError("gone"), true));
  EXPECT_THAT(FailureOf(results, 10, /*can_resend=*/false, /*not_taken=*/3),
              FailsWith(kUnavailable,
                        "gone; epsilon 1 was spent for it; 6 more were not sent; 3 releases that "
                        "were charged were not used"));
  EXPECT_THAT(
      FailureOf(results, 4, /*can_resend=*/true, /*not_taken=*/0),
      FailsWith(kUnavailable, "`resend` sends the last of these releases again at no cost"));
}

TEST(FailureOf, PossiblyChargedTargetsAreNotCalledFree) {
  const auto failure = [](bool charged, const absl::Status& status) {
    return FailureOf({SearchResult(), ResultOf(status, charged)}, 10, false, 0);
  };
  const auto not_sent = [](const char* ending) {
    return FailsWith(kUnavailable, absl::StrCat("8 more were not sent", ending));
  };
  const absl::Status unavailable = absl::UnavailableError("8 charges may count");
  EXPECT_THAT(failure(true, unavailable), not_sent(" and cost nothing"));
  EXPECT_THAT(failure(false, unavailable), not_sent(""));
  EXPECT_THAT(failure(false, unavailable), ::testing::Not(not_sent(" and cost nothing")));
  EXPECT_THAT(failure(false, absl::DataLossError("other ledger")).message(),
              ::testing::Not(::testing::HasSubstr("nothing")));
}

// A batch that ended at a damaged answer would show the server that the client saw the damage.
TEST(EndsBatch, RefusalOfEveryQueryEndsItButNoDamagedAnswer) {
  EXPECT_FALSE(EndsBatch(absl::DataLossError("")));
  EXPECT_FALSE(EndsBatch(absl::InternalError("")));
  for (const absl::Status& refusal :
       {absl::ResourceExhaustedError(""), absl::UnauthenticatedError(""),
        absl::PermissionDeniedError(""), absl::FailedPreconditionError("")}) {
    EXPECT_TRUE(EndsBatch(refusal)) << refusal;
  }
}

}  // namespace
}  // namespace privatemail::client
