// Power loss under the PostgreSQL server of a daemon: unsynced bytes and names are lost, half lost
// or kept. After recovery all acknowledged changes are there, and those in flight as a whole or not
// at all.
//
// Every fourth time the power fails again during recovery. PRIVATEMAIL_POWER_CUTS is the number of
// cuts, 12 by default. The daemon is killed as well; its own files hold nothing of collections and
// stay as they are.
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

  PowerLoss LossOf(unsigned number) {
    return {.bytes = static_cast<UnsyncedBytes>(number % 3),
            .names = static_cast<UnsyncedNames>(number / 3 % 2),
            .seed = bits_()};
  }

  void LosePowerDuringRecovery() {
    postgres_.Launch();
    // The random time of the cut is what is tested.
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

TEST_F(PostgresPowerLoss, AcknowledgedWritesSurvive) {
  for (int cut = 1; cut <= Cuts() && !HasFailure(); ++cut) {
    SCOPED_TRACE(cut);
    WorkUntil([&] { postgres_.LosePower(LossOf(static_cast<unsigned>(cut))); }, 1'000'000);
    End();
    if (cut % 4 == 0) LosePowerDuringRecovery();
    ASSERT_NO_FATAL_FAILURE(StartBoth());
    Check();
  }
  Report("losses of power under PostgreSQL", Cuts());
}

// Controls: on disks that ignore syncs, the check does find losses.

TEST_F(PostgresPowerLoss, IgnoredSyncsOfLogAreDetected) {
  PostgresServer::Ask(conninfo_, "CHECKPOINT");  // a later one would need the log
  postgres_.disk().IgnoreSyncs("/pg_wal/");
  for (Writer& writer : writers_) ASSERT_THAT(writer.Write(Connect(), 2), IsOk());
  postgres_.LosePower({});
  End();
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  EXPECT_THAT(Faults(), ::testing::Not(::testing::IsEmpty()));
}

TEST_F(PostgresPowerLoss, IgnoredSyncsOfTableAreDetected) {
  const std::string table =
      PostgresServer::Ask(conninfo_, "SELECT pg_relation_filepath('privatemail.items')");
  postgres_.disk().IgnoreSyncs("/" + table);
  for (Writer& writer : writers_) ASSERT_THAT(writer.Write(Connect(), 20), IsOk());
  PostgresServer::Ask(conninfo_, "CHECKPOINT");  // recovery starts from here
  postgres_.LosePower({});
  End();
  ASSERT_NO_FATAL_FAILURE(StartBoth());
  EXPECT_THAT(Faults(), ::testing::Not(::testing::IsEmpty()));
}

}  // namespace
}  // namespace privatemail::e2e
