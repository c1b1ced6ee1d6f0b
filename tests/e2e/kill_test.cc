// A daemon that is killed at a random time loses nothing that it acknowledged.
//
// SIGKILL ends the daemon under concurrent writes, builds and snapshots; every fourth time also
// while it recovers, and on PostgreSQL every third time ends the database server. After each
// restart the data is compared with what was acknowledged. PRIVATEMAIL_KILLS is the number of kills
// per store: 10 by default, 100 in kill_daemon.sh.
//
// Unsynced writes survive these kills; store_power_loss_test.cc and postgres_power_loss_test.cc
// drop them.
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/at_work.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using std::chrono::microseconds;

int Kills() {
  const char* const text = std::getenv("PRIVATEMAIL_KILLS");
  return text == nullptr ? 10 : std::atoi(text);
}

// PostgreSQL may still execute statements of the killed daemon.
void WaitForNoClients(const std::string& conninfo) {
  const std::string count =
      "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> "
      "pg_backend_pid()";
  ASSERT_TRUE(WaitUntil([&] { return PostgresServer::Ask(conninfo, count) == "0"; }));
}

class Kill : public AtWork {
 protected:
  void KillDuringStart() {
    Command command = {PRIVATEMAILD, "--data-dir",  folder_ / "data",
                       "--listen",   "127.0.0.1:0", "--insecure"};
    command.insert(command.end(), flags_.begin(), flags_.end());
    const Program starting(command);
    // The random time of the kill is what is tested.
    std::this_thread::sleep_for(microseconds(bits_() % 60'000));
    starting.Signal(SIGKILL);
  }
};

TEST_F(Kill, AcknowledgedWritesSurviveOnSqlite) {
  ASSERT_NO_FATAL_FAILURE(Prepare());
  for (int kill = 1; kill <= Kills() && !HasFailure(); ++kill) {
    SCOPED_TRACE(kill);
    WorkUntil([&] { End(); });
    if (kill % 4 == 0) KillDuringStart();
    ASSERT_NO_FATAL_FAILURE(Start());
    Check();
  }
  Report("kills on SQLite", Kills());
}

TEST_F(Kill, AcknowledgedWritesSurviveOnPostgres) {
  PostgresServer server;
  const std::string conninfo = server.NewDatabase();
  UsePostgres(conninfo);
  ASSERT_NO_FATAL_FAILURE(Prepare());
  for (int kill = 1; kill <= Kills() && !HasFailure(); ++kill) {
    SCOPED_TRACE(kill);
    if (kill % 3 == 0) {
      WorkUntil([&] { server.Kill(); });
      End();
      server.Start();
    } else {
      WorkUntil([&] { End(); });
      ASSERT_NO_FATAL_FAILURE(WaitForNoClients(conninfo));
    }
    if (kill % 4 == 0) KillDuringStart();
    ASSERT_NO_FATAL_FAILURE(Start());
    Check();
  }
  Report("kills on PostgreSQL", Kills());
}

}  // namespace
}  // namespace privatemail::e2e
