// A daemon that is killed at any instant loses nothing that it acknowledged.
//
// The daemon runs over a store on disk while three writers upsert and delete, a builder builds
// and a fourth caller takes snapshots and restores them.
// SIGKILL strikes it after a random time, every fourth time a second one while it recovers, and
// with PostgreSQL the database server too, every third time. It is started again on the same data,
// and what it answers is compared with what it had acknowledged. PRIVATEMAIL_KILLS in the
// environment says how many kills a store gets: 8 without it, which is what CI runs;
// tests/e2e/kill_daemon.sh runs 100.
//
// Writes that were not synced survive these kills; store_power_loss_test.cc takes them away, and
// with PostgreSQL postgres_power_loss_test.cc.
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/at_work.h"
#include "tests/testing/postgres_server.h"

namespace privatemail::e2e {
namespace {

using std::chrono::microseconds;

int Kills() {
  const char* const text = std::getenv("PRIVATEMAIL_KILLS");
  return text == nullptr ? 8 : std::atoi(text);
}

// The server may still be at work on what a client had sent before it died.
void AwaitNoClients(const std::string& conninfo) {
  const std::string count =
      "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> "
      "pg_backend_pid()";
  while (PostgresServer::Ask(conninfo, count) != "0") {
    std::this_thread::sleep_for(microseconds(10'000));
  }
}

class Kill : public AtWork {
 protected:
  // Once before it listens, at the latest.
  void KillWhileItStarts() {
    std::vector<std::string> command = {PRIVATEMAILD, "--data-dir",  folder_ / "data",
                                        "--listen",   "127.0.0.1:0", "--insecure"};
    command.insert(command.end(), flags_.begin(), flags_.end());
    const Program starting(command);
    std::this_thread::sleep_for(microseconds(bits_() % 60'000));
    starting.Signal(SIGKILL);
  }
};

TEST_F(Kill, LosesNothingThatWasAcknowledgedOnSqlite) {
  ASSERT_NO_FATAL_FAILURE(Prepare());
  for (int kill = 1; kill <= Kills() && !HasFailure(); ++kill) {
    SCOPED_TRACE(kill);
    WorkUntil([&] { End(); });
    if (kill % 4 == 0) KillWhileItStarts();
    ASSERT_NO_FATAL_FAILURE(Start());
    Check();
  }
  Report("kills on SQLite", Kills());
}

TEST_F(Kill, LosesNothingThatWasAcknowledgedOnPostgres) {
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
      AwaitNoClients(conninfo);
    }
    if (kill % 4 == 0) KillWhileItStarts();
    ASSERT_NO_FATAL_FAILURE(Start());
    Check();
  }
  Report("kills on PostgreSQL", Kills());
}

}  // namespace
}  // namespace privatemail::e2e
