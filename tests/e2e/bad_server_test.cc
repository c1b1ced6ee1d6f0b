// Unreachable and silent servers.
#include <csignal>

#include "tests/e2e/service.h"

namespace privatemail::e2e {
namespace {

using nlohmann::json;
using ::testing::StartsWith;

class BadServer : public FilledService {
 protected:
  // Expects this error of valid commands that call the server.
  void ExpectErrors(const std::string& code, const std::string& start,
                    const Command& more = {}) const {
    for (const Command& command : std::vector<Command>{
             {"collection", "delete", "things", "--yes"},
             {"budget", "set", "things", "--epsilon", "1", "--delta", ".1"},
             Query({"--row", "0", "--label", "0", "--epsilon", "1", "--delta", "1e-5"})}) {
      const Outcome outcome = Run(Join(Join(command, {"--json"}), more));
      EXPECT_EQ(outcome.exit_code, 1) << ::testing::PrintToString(command);
      const json error = outcome.json()["error"];
      EXPECT_EQ(error["code"], code) << ::testing::PrintToString(command);
      EXPECT_THAT(error["message"].get<std::string>(), StartsWith(start));
    }
  }
};

// A stopped process: the system accepts its connections.
TEST_F(BadServer, UnreachableOrSilentServerIsNamed) {
  const json before = Everything();
  const std::string server = "server " + daemon_->address();
  daemon_->program().Signal(SIGSTOP);
  ExpectErrors("DEADLINE_EXCEEDED", server + " did not answer within 250ms",
               {"--deadline", "0.25"});
  daemon_->program().Signal(SIGCONT);
  EXPECT_EQ(Everything(), before);
  daemon_.reset();
  ExpectErrors("UNAVAILABLE", server + " cannot be reached: ");
  StartDaemon();
  EXPECT_EQ(Everything(), before);
}

}  // namespace
}  // namespace privatemail::e2e
