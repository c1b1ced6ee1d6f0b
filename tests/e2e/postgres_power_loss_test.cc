// The power goes at any instant under the PostgreSQL server of a daemon, and what the server had
// not synced is lost, half lost or there, and so are names that were not. The server must start,
// and hold every change that the daemon acknowledged, and of those under way all or nothing.
//
// Every fourth time the power goes again while the server recovers. PRIVATEMAIL_POWER_CUTS in the
// environment says how many cuts there are: 12 without it, which is what CI runs. The daemon dies
// with the database, but its own files are on another disk: with PostgreSQL nothing of collections
// is in them.
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/e2e/at_work.h"
#include "tests/testing/matchers.h"
#include "tests/testing/postgres_on_disk.h"

namespace privatemail::e2e {
namespace {

int Cuts() {
  const char* const text = std::getenv("PRIVATEMAIL_POWER_CUTS");
  return text == nullptr ? 12 : std::atoi(text);
}

class PostgresPowerLoss : public AtWork {
 protected:
  void SetUp() override {
    conninfo_ = postgres_.server().NewDatabase();
    UsePostgres(conninfo_);
    ASSERT_NO_FATAL_FAILURE(Prepare());
  }

  // Each kind in turn.
  PowerLoss LossOf(unsigned number) {
    return {.bytes = static_cast<UnsyncedBytes>(number % 3),
            .names = static_cast<UnsyncedNames>(number / 3 % 2),
            .seed = bits_()};
  }

  void LosePowerWhileItRecovers() {
    postgres_.Launch();
    std::this_thread::sleep_for(std::chrono::microseconds(bits_() % 400'000));
    postgres_.LosePower(LossOf(static_cast<unsigned>(bits_())));
  }

  void StartBoth() {
    postgres_.Start();
    Start();
  }

  PostgresOnDisk postgres_;
  std::string conninfo_;
};

TEST_F(PostgresPowerLoss, LosesNothingThatWasAcknowledged) {
  for (int cut = 1; cut <= Cuts() && !HasFailure(); ++cut) {
    SCOPED_TRACE(cut);
    WorkUntil([&] { postgres_.LosePower(LossOf(static_cast<unsigned>(cut))); }, 1'000'000);
    End();
    if (cut % 4 == 0) LosePowerWhileItRecovers();
    ASSERT_NO_FATAL_FAILURE(StartBoth());
    Check();
  }
  Report("losses of power under PostgreSQL", Cuts());
}

// The tests of the test: disks that forget what they were told to keep do lose changes.

TEST_F(PostgresPowerLoss, ADiskThatIgnoresSyncsOfTheLogIsNoticed) {
  PostgresServer::Ask(conninfo_, "CHECKPOINT");  // and none later: it would need the log
  postgres_.disk().IgnoreSyncs("/pg_wal/");
  for (Writer& writer : writers_) ASSERT_THAT(writer.Write(Connect(), 2), IsOk());
  postgres_.LosePower({});
  End();
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  EXPECT_THAT(Faults(), ::testing::Not(::testing::IsEmpty()));
}

TEST_F(PostgresPowerLoss, ADiskThatIgnoresSyncsOfATableIsNoticed) {
  const std::string table =
      PostgresServer::Ask(conninfo_, "SELECT pg_relation_filepath('privatemail.items')");
  postgres_.disk().IgnoreSyncs("/" + table);
  for (Writer& writer : writers_) ASSERT_THAT(writer.Write(Connect(), 20), IsOk());
  PostgresServer::Ask(conninfo_, "CHECKPOINT");  // from here on the log is that of later changes
  postgres_.LosePower({});
  End();
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  EXPECT_THAT(Faults(), ::testing::Not(::testing::IsEmpty()));
}

}  // namespace
}  // namespace privatemail::e2e
