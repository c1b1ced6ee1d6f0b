// Unreachable and silent servers.
#include <csignal>

#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::StartsWith;

class BadServer : public FilledService {
 protected:
  // Valid commands that call the server.
  std::vector<Command> Commands() const {
    return {{"collection", "delete", "things", "--yes"},
            {"budget", "set", "things", "--epsilon", "1", "--delta", ".1"},
            Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5"})};
  }

  json ErrorOf(const Command& command, const Command& more = {}) const {
    const Outcome outcome = Run(Join(Join(command, {"--json"}), more));
    const json error = outcome.json()["error"];
    EXPECT_EQ(outcome.exit_code, error["code"] == "INVALID_ARGUMENT" ? 2 : 1)
        << ::testing::PrintToString(command);
    return error;
  }
};

TEST_F(BadServer, UnreachableServerIsNamed) {
  const json before = Everything();
  const std::string address = daemon_->address();
  daemon_.reset();
  for (const Command& command : Commands()) {
    const json error = ErrorOf(command);
    EXPECT_EQ(error["code"], "UNAVAILABLE") << ::testing::PrintToString(command);
    EXPECT_THAT(error["message"].get<std::string>(),
                StartsWith("server " + address + " cannot be reached: "));
  }
  StartDaemon();
  EXPECT_EQ(Everything(), before);
}

// A stopped process: the system accepts its connections.
TEST_F(BadServer, SilentServerEndsAtTheDeadline) {
  const json before = Everything();
  daemon_->program().Signal(SIGSTOP);
  for (const Command& command : Commands()) {
    const json error = ErrorOf(command, {"--deadline", "0.25"});
    EXPECT_EQ(error["code"], "DEADLINE_EXCEEDED");
    EXPECT_EQ(error["message"], "server " + daemon_->address() + " did not answer within 250ms");
  }
  daemon_->program().Signal(SIGCONT);
  EXPECT_EQ(Everything(), before);
}

}  // namespace
}  // namespace privatemail::e2e
