// Programs that are killed in the middle of their work.
#include <csignal>
#include <numeric>

#include "absl/time/clock.h"
#include "privatemail/ledger.h"
#include "privatemail/transport.h"
#include "tests/e2e/service.h"
#include "tests/testing/matchers.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class InterruptedIngest : public Service {
 protected:
  static constexpr int kMany = 30000;

  void SetUp() override {
    StartDaemon();
    CreateCollection();
    Write("first", SeparatedClasses(kItems, 2));
    Write("many", SeparatedClasses(kMany, 4));
    std::string ids;
    for (int i = 0; i < kMany; ++i) ids += "many-" + std::to_string(i) + "\n";
    ids_ = folder_.Write("ids", ids);
  }

  std::vector<std::string> Upload() const {
    return {"ingest",       "things", "--vectors", Vectors("many"), "--labels",
            Labels("many"), "--ids",  ids_,        "--json"};
  }

  // Asks until the server holds this many items; returns how many it holds.
  uint64_t WaitForItems(uint64_t wanted) const {
    const Transport transport = Connect();
    while (true) {
      const auto collection = transport.GetCollection("things");
      if (!collection.ok()) return 0;
      if (collection->items() >= wanted) return collection->items();
    }
  }

  std::string ids_;
};

TEST_F(InterruptedIngest, KeepsWhatWasAcknowledgedAndResumesWhenTheDaemonIsKilled) {
  EXPECT_EQ(Ingest("first")["acknowledged"], kItems);
  Program upload(user_.CommandLine(Upload()));
  const uint64_t seen = WaitForItems(kItems + 1000);
  ASSERT_GE(seen, kItems + 1000u);
  // Stands still, so that it cannot resume before its traces are looked at.
  upload.Signal(SIGSTOP);
  daemon_->program().Signal(SIGKILL);
  EXPECT_EQ(daemon_->program().Wait().exit_code, 128 + SIGKILL);
  StartDaemon(daemon_->address());

  const uint64_t kept = Info()["items"];
  EXPECT_GE(kept, seen);
  ASSERT_LT(kept, static_cast<uint64_t>(kItems + kMany)) << "the upload was not interrupted";
  upload.Signal(SIGCONT);
  const Outcome interrupted = upload.Wait();
  if (interrupted.exit_code != 0) {  // it did not resume by itself
    EXPECT_EQ(interrupted.exit_code, 1);
    EXPECT_EQ(interrupted.json()["error"]["code"], "UNAVAILABLE") << interrupted.out;
    EXPECT_THAT(interrupted.err, HasSubstr(daemon_->address()));
    EXPECT_EQ(Info()["items"], kept);
    const json repeated = Answer(Upload());
    EXPECT_EQ(repeated["inserted"], kItems + kMany - kept);
    EXPECT_EQ(repeated["unchanged"], kept - kItems);
    EXPECT_EQ(repeated["updated"], 0);
  }
  EXPECT_EQ(Info()["items"], kItems + kMany);
  EXPECT_EQ(Answer(Upload())["unchanged"], kMany);
  EXPECT_EQ(Ingest("first")["unchanged"], kItems);
  EXPECT_EQ(Info()["items"], kItems + kMany);
}

TEST_F(InterruptedIngest, ResumesWhenTheClientIsKilled) {
  Program upload(user_.CommandLine(Upload()));
  ASSERT_GE(WaitForItems(1000), 1000u);
  upload.Signal(SIGKILL);
  EXPECT_EQ(upload.Wait().exit_code, 128 + SIGKILL);
  const json repeated = Answer(Upload());
  EXPECT_EQ(repeated["acknowledged"], kMany);
  EXPECT_EQ(repeated["updated"], 0);
  EXPECT_GE(repeated["unchanged"], 1000);
  EXPECT_EQ(Info()["items"], kMany);
}

TEST_F(InterruptedIngest, EndsWellWhenTheDaemonIsAskedToEnd) {
  Program upload(user_.CommandLine(Upload()));
  const uint64_t seen = WaitForItems(1000);
  daemon_->program().Signal(SIGTERM);
  const Outcome daemon = daemon_->program().Wait();
  EXPECT_EQ(daemon.exit_code, 0);
  EXPECT_THAT(daemon.err, HasSubstr("INFO stopped\n"));
  // Killed, not awaited: a client may try for long to reach a daemon that is gone.
  upload.Signal(SIGKILL);
  upload.Wait();
  StartDaemon();
  EXPECT_GE(Info()["items"], seen);
  EXPECT_EQ(Answer(Upload())["acknowledged"], kMany);
  EXPECT_EQ(Info()["items"], kMany);
}

class InterruptedQuery : public FilledService {
 protected:
  // A batch of `count` queries; its answers are printed when all are sent.
  std::vector<std::string> Batch(int count, const std::string& epsilon) const {
    std::string rows = "0";
    for (int i = 1; i < count; ++i) rows += ",0";
    return user_.CommandLine(
        Query({"--label", "0", "--epsilon", epsilon, "--delta", "1e-5", "--json", "--rows", rows}));
  }

  // Looks into the ledger itself: a program would take longer to start than a query takes.
  void WaitForReleases(int64_t releases) const {
    const auto ledger = Ledger::Open(user_.state + "/ledger.sqlite");
    ASSERT_TRUE(ledger.ok()) << ledger.status();
    const std::string uuid = Info()["uuid"];
    for (int i = 0; i < 60'000; ++i) {
      const auto entry = (*ledger)->Show(uuid);
      ASSERT_TRUE(entry.ok()) << entry.status();
      if (entry->releases >= releases) return;
      absl::SleepFor(absl::Milliseconds(1));
    }
    FAIL() << "no release " << releases << " within a minute";
  }
};

// The kills fall into different parts of a query.
TEST_F(InterruptedQuery, NeverSpendsMoreThanWasGrantedAndRefundsNothing) {
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

  // Of two at once that the rest does not cover, one is refused and nothing is overspent.
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

// What leaves the machine is paid for and kept before it leaves; and once nobody answers, nothing
// more of the batch is spent.
TEST_F(InterruptedQuery, IsChargedWhenTheDaemonDiesBeforeItAnswers) {
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
  EXPECT_EQ(Budget()["releases"], answered + 1);
  EXPECT_EQ(Answer({"explain"})["collection"], "things");
}

}  // namespace
}  // namespace privatemail::e2e
