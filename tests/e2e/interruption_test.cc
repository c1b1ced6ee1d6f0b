// Programs that are killed in the middle of their work.
#include <csignal>
#include <numeric>

#include "client/transport.h"
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

using InterruptedQuery = FilledService;

// Each round is killed after one more answer than the one before, so that the kill falls into
// different parts of a query: some are charged and never answered, none is answered and not
// charged.
TEST_F(InterruptedQuery, NeverSpendsMoreThanWasGrantedAndRefundsNothing) {
  const double epsilon = .5;
  const int affordable = 40;
  Grant(20, .1);
  std::vector<std::string> command =
      Query({"--label", "0", "--epsilon", "0.5", "--delta", "1e-5", "--json", "--rows"});
  std::string rows = "0";
  for (int i = 1; i < affordable + 5; ++i) rows += ",0";
  command.push_back(rows);

  int answered = 0;
  double spent = 0;
  for (int round = 0; round < 6; ++round) {
    Program query(user_.CommandLine(command));
    for (int line = 0; line <= round % 3; ++line) {
      const std::optional<std::string> answer = query.ReadLine();
      ASSERT_TRUE(answer) << query.Wait().err;
      EXPECT_TRUE(json::parse(*answer).contains("matches")) << *answer;
    }
    query.Signal(SIGKILL);
    const Outcome killed = query.Wait();
    EXPECT_EQ(killed.exit_code, 128 + SIGKILL);
    for (const json& line : killed.lines()) answered += line.contains("matches") ? 1 : 0;

    const json budget = Budget();
    EXPECT_GE(budget["spent"]["epsilon"], spent) << "something was refunded";
    spent = budget["spent"]["epsilon"];
    EXPECT_EQ(spent, epsilon * budget["releases"].get<int>());
    EXPECT_GE(budget["releases"], answered);
    EXPECT_LE(budget["releases"], answered + round + 1) << "one query at most is lost by a kill";
    EXPECT_LE(spent, 20);
  }

  // Two at once spend the rest, and not a bit more.
  Program first(user_.CommandLine(command));
  Program second(user_.CommandLine(command));
  for (Program* program : {&first, &second}) {
    const Outcome outcome = program->Wait();
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.lines().back()["error"]["code"], "RESOURCE_EXHAUSTED") << outcome.err;
    for (const json& line : outcome.lines()) answered += line.contains("matches") ? 1 : 0;
  }
  const json budget = Budget();
  EXPECT_EQ(budget["releases"], affordable);
  EXPECT_EQ(budget["spent"]["epsilon"], 20);
  EXPECT_GE(affordable, answered);
  EXPECT_GE(answered, affordable - 6);
  const json changes = Answer({"budget", "history", "things"})["changes"];
  EXPECT_EQ(std::count_if(changes.begin(), changes.end(),
                          [](const json& change) { return change["kind"] == "charge"; }),
            affordable);
}

// What leaves the machine is paid for and kept before it leaves.
TEST_F(InterruptedQuery, IsChargedWhenTheDaemonDiesBeforeItAnswers) {
  std::string rows = "0";
  for (int i = 1; i < 300; ++i) rows += ",0";
  Program query(user_.CommandLine(
      Query({"--label", "0", "--epsilon", ".25", "--delta", "1e-5", "--json", "--rows", rows})));
  ASSERT_TRUE(query.ReadLine());
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
