// Programs that are killed during a query.
#include <csignal>

#include "privatemail/ledger.h"
#include "tests/e2e/service.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class InterruptedQuery : public FilledService {
 protected:
  // A batch of `count` queries, whose answers are printed after the last.
  Command Batch(int count, const std::string& epsilon) const {
    std::string rows = "0";
    for (int i = 1; i < count; ++i) rows += ",0";
    return user_.CommandLine(
        Query({"--label", "0", "--epsilon", epsilon, "--delta", "1e-5", "--json", "--rows", rows}));
  }

  // Reads the ledger directly, because a program takes longer to start than a query takes.
  void WaitForReleases(int64_t releases) const {
    const auto ledger = Ledger::Open(user_.state + "/ledger.sqlite");
    ASSERT_TRUE(ledger.ok()) << ledger.status();
    const std::string uuid = Info()["uuid"];
    ASSERT_TRUE(WaitUntil([&] {
      const auto entry = (*ledger)->Show(uuid);
      return entry.ok() && entry->releases >= releases;
    }));
  }
};

TEST_F(InterruptedQuery, KilledClientNeitherOverspendsNorRefunds) {
  Grant(1000, .1);
  int releases = 0;
  for (int round = 0; round < 4; ++round) {
    Program query(Batch(300, ".5"));
    WaitForReleases(releases + round + 1);
    query.Signal(SIGKILL);
    EXPECT_EQ(query.Wait().exit_code, 128 + SIGKILL);
    const json budget = Budget();
    EXPECT_GT(budget["releases"], releases) << "something was refunded";
    releases = budget["releases"];
    EXPECT_EQ(budget["spent"]["epsilon"], .5 * releases);
  }

  // The grant does not cover two concurrent batches: one is refused.
  const int affordable = 30;
  Grant(.5 * (releases + affordable), .1);
  Program first(Batch(20, ".5"));
  Program second(Batch(20, ".5"));
  int refused = 0;
  int answered = 0;
  for (Program* program : {&first, &second}) {
    const Outcome outcome = program->Wait();
    for (const json& line : outcome.lines()) {
      answered += line.contains("matches") ? 1 : 0;
      refused += line.contains("error") && line["error"]["code"] == "RESOURCE_EXHAUSTED" ? 1 : 0;
    }
  }
  EXPECT_GE(refused, 1);
  EXPECT_LE(answered, affordable);
  EXPECT_EQ(Budget()["releases"], releases + answered);
  const json changes = Answer({"budget", "history", "things"})["changes"];
  EXPECT_EQ(std::count_if(changes.begin(), changes.end(),
                          [](const json& change) { return change["kind"] == "charge"; }),
            releases + answered);
}

// A release is charged and saved before it is sent. Of the rest of the batch no more is charged
// than was released, and the message says how much.
TEST_F(InterruptedQuery, QueryIsChargedIfTheDaemonDiesBeforeItsAnswer) {
  Program query(Batch(300, ".25"));
  WaitForReleases(2);
  daemon_->program().Signal(SIGKILL);
  daemon_->program().Wait();
  const Outcome outcome = query.Wait();
  EXPECT_EQ(outcome.exit_code, 1);
  const std::vector<json> lines = outcome.lines();
  EXPECT_EQ(lines.back()["error"]["code"], "UNAVAILABLE");
  const int answered = static_cast<int>(lines.size()) - 1;
  StartDaemon();
  const int not_used = static_cast<int>(Budget()["releases"]) - answered - 1;
  EXPECT_GE(not_used, 0);
  EXPECT_LE(not_used, answered);
  const std::string message = lines.back()["error"]["message"];
  EXPECT_THAT(message,
              HasSubstr(not_used == 0 ? "not sent and cost nothing"
                                      : "not sent; " + std::to_string(not_used) + " release"));
  EXPECT_EQ(Answer({"explain"})["collection"], "things");
}

}  // namespace
}  // namespace privatemail::e2e
