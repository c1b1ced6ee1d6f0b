#include "client/queries/query_batch.h"

#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

// Charged 1, 2 and 4 at a time; the fourth query meets a server that has gone.
TEST(QueryBatch, EarlyEndSaysHowManyChargesWereNotUsed) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(folder / "ledger"));
  ASSERT_THAT(ledger->Grant("uuid", {100, .1}), IsOk());
  const Guarantee cost = {.epsilon = 1, .neighbours = "n", .proven = true, .source = "s"};
  const std::vector<Attempt> outcomes = SendAll<Attempt>(
      std::vector<NamedTarget>(10), *ledger,
      [&](Attempt* outcome) {
        outcome->charged = true;
        outcome->epsilon = 1;
        return ledger->Charge("uuid", cost).status();
      },
      [&, sent = 0](Attempt*) mutable {
        return ++sent < 4 ? absl::OkStatus() : absl::UnavailableError("gone");
      });
  EXPECT_THAT(FailureOf(AttemptsOf(outcomes), 10, "resend"),
              FailsWith(absl::StatusCode::kUnavailable,
                        "gone; epsilon 1 was spent for it; 6 more were not sent; 3 releases that "
                        "were charged were not used"));
  EXPECT_EQ(ledger->Show("uuid")->releases, 7);
}

TEST(QueryBatch, PossiblyChargedQueriesAreNotCalledFree) {
  const auto failure = [](bool charged, const absl::Status& status) {
    Attempt failed;
    failed.charged = charged;
    failed.status = status;
    const std::vector<Attempt> outcomes = {Attempt(), failed};
    return FailureOf(AttemptsOf(outcomes), 10, "resend");
  };
  const auto not_sent = [](const char* ending) {
    return FailsWith(absl::StatusCode::kUnavailable, absl::StrCat("8 more were not sent", ending));
  };
  const absl::Status unavailable = absl::UnavailableError("8 charges may count");
  EXPECT_THAT(failure(true, unavailable), not_sent(" and cost nothing"));
  EXPECT_THAT(failure(false, unavailable), not_sent(""));
  EXPECT_THAT(failure(false, unavailable), ::testing::Not(not_sent(" and cost nothing")));
  EXPECT_THAT(failure(false, absl::DataLossError("other ledger")).message(),
              ::testing::Not(::testing::HasSubstr("nothing")));
}

TEST(LeftOf, SaysWhatIsChargedAhead) {
  LedgerEntry entry;
  entry.granted = {2, 1e-5};
  entry.sums = {.5, 0};
  EXPECT_EQ(LeftOf(entry), "epsilon 1.5 delta 1e-05");
  entry.charged_ahead = 1;
  EXPECT_EQ(LeftOf(entry), "epsilon 1.5 delta 1e-05, with 1 query to come charged already");
  entry.charged_ahead = 3;
  EXPECT_EQ(LeftOf(entry), "epsilon 1.5 delta 1e-05, with 3 queries to come charged already");
}

TEST(NextDeparture, IsAMultipleOfTheInterval) {
  using std::chrono::milliseconds;
  const std::chrono::steady_clock::time_point arrived(std::chrono::seconds(1000));
  for (const auto& [past, expected] : {std::pair{0, 50},
                                       {1, 50},
                                       {49'999, 50},
                                       {50'000, 50},
                                       {50'001, 100},
                                       {100'000, 100},
                                       {149'000, 150}}) {
    EXPECT_EQ(NextDeparture(arrived, arrived + std::chrono::microseconds(past), milliseconds(50)),
              arrived + milliseconds(expected))
        << past;
  }
}

}  // namespace
}  // namespace privatemail::client
