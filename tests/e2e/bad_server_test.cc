// Servers that do not answer, and daemons that must not start.
#include <csignal>

#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class BadServer : public FilledService {
 protected:
  // Everything that asks the server something, with nothing wrong in it.
  std::vector<std::vector<std::string>> Commands() const {
    return {{"collection", "list"},
            {"collection", "info", "things"},
            {"collection", "create", "more", "--anchors", Vectors("anchors"), "--anchor-labels",
             Labels("anchors")},
            {"collection", "delete", "things"},
            {"ingest", "things", "--vectors", Vectors("queries"), "--labels", Labels("queries")},
            {"budget", "set", "things", "--epsilon", "1", "--delta", ".1"},
            Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5"})};
  }

  json ErrorOf(std::vector<std::string> command, const std::vector<std::string>& more = {}) const {
    command.push_back("--json");
    command.insert(command.end(), more.begin(), more.end());
    const Outcome outcome = Run(command);
    const json error = outcome.json()["error"];
    EXPECT_EQ(outcome.exit_code, error["code"] == "INVALID_ARGUMENT" ? 2 : 1)
        << ::testing::PrintToString(command);
    return error;
  }
};

TEST_F(BadServer, OneThatIsGoneIsNamed) {
  const json before = Everything();
  const std::string address = daemon_->address();
  daemon_.reset();
  for (const std::vector<std::string>& command : Commands()) {
    const json error = ErrorOf(command);
    EXPECT_EQ(error["code"], "UNAVAILABLE") << ::testing::PrintToString(command);
    EXPECT_THAT(error["message"].get<std::string>(),
                StartsWith("server " + address + " cannot be reached: "));
  }
  StartDaemon();
  EXPECT_EQ(Everything(), before);
}

// It accepts connections, as the system does for a process that stands still, and says nothing.
TEST_F(BadServer, OneThatIsSilentIsGivenUpAtTheDeadline) {
  const json before = Everything();
  daemon_->program().Signal(SIGSTOP);
  const std::vector<std::string> query =
      Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5"});
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"collection", "info", "things"}, query}) {
    const json error = ErrorOf(command, {"--deadline", "0.25"});
    EXPECT_EQ(error["code"], "DEADLINE_EXCEEDED");
    EXPECT_EQ(error["message"], "server " + daemon_->address() + " did not answer within 250ms");
  }
  daemon_->program().Signal(SIGCONT);
  EXPECT_EQ(Everything(), before);
}

TEST_F(BadServer, ADeadlineThatIsNoneIsRefused) {
  for (const std::string deadline : {"0", "-1", "nan", "inf"}) {
    const json error = ErrorOf({"collection", "list"}, {"--deadline", deadline});
    EXPECT_EQ(error["code"], "INVALID_ARGUMENT");
    EXPECT_THAT(error["message"].get<std::string>(),
                ::testing::AllOf(StartsWith("--deadline must be a positive number of seconds"),
                                 EndsWith("but is " + deadline)));
  }
}

class BadDaemon : public Service {
 protected:
  void SetUp() override { StartDaemon(); }

  // Expects that it ends at once with one line that says why.
  void ExpectDoesNotStart(Daemon& daemon, const std::string& why, int exit_code = 1) const {
    EXPECT_FALSE(daemon.listening());
    const Outcome outcome = daemon.program().Wait();
    EXPECT_EQ(outcome.exit_code, exit_code);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, ::testing::AllOf(HasSubstr(" ERROR "), EndsWith(why + "\n")));
    // The one that is running does not suffer.
    EXPECT_EQ(Run({"collection", "list"}).exit_code, 0);
  }
};

TEST_F(BadDaemon, APortInUse) {
  Daemon second(folder_ / "other", {"--insecure"}, daemon_->address());
  ExpectDoesNotStart(second, "cannot listen on " + daemon_->address() + ": Address already in use");
}

TEST_F(BadDaemon, ADataDirectoryOfAnotherDaemon) {
  Daemon second(folder_ / "data", {"--insecure"});
  ExpectDoesNotStart(second, "data directory " + (folder_ / "data") +
                                 " is locked by another daemon (pid " +
                                 std::to_string(daemon_->program().pid()) + ")");
}

TEST_F(BadDaemon, PlaintextForOtherMachines) {
  Daemon second(folder_ / "other", {"--insecure"}, "0.0.0.0:0");
  ExpectDoesNotStart(
      second, "--listen must be a loopback address (127.0.0.1, ::1, localhost), but is '0.0.0.0:0'",
      2);
}

TEST_F(BadDaemon, AnAddressThatIsNone) {
  for (const std::string address : {"127.0.0.1", "127.0.0.1:65536", "127.0.0.1:http"}) {
    Daemon second(folder_ / "other", {"--insecure"}, address);
    ExpectDoesNotStart(
        second, "--listen must be HOST:PORT with a port from 0 to 65535, but is '" + address + "'",
        2);
  }
}

}  // namespace
}  // namespace privatemail::e2e
