// PostgreSQL without disk space for tables (it survives), for its log (it ends), or for both:
// changes are refused, searches go on, nothing acknowledged is lost, and writes work again with
// space.
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/e2e/at_work.h"
#include "tests/testing/matchers.h"
#include "tests/testing/postgres_on_disk.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kRounds = 3;
constexpr char kDatabase[] = "database test1 at 127.0.0.1:";

class PostgresFullDisk : public AtWork {
 protected:
  void SetUp() override {
    const std::string conninfo = postgres_.server().NewDatabase();
    // Makes the log grow, as with a replica that lags; otherwise PostgreSQL reuses its files.
    PostgresServer::Ask(conninfo, "ALTER SYSTEM SET wal_keep_size = '1GB'");
    PostgresServer::Ask(conninfo, "SELECT pg_reload_conf()");
    UsePostgres(conninfo);
    ASSERT_NO_FATAL_FAILURE(Prepare());
  }

  // Uses new ids, so that the write always needs space.
  absl::Status WriteNewItems() {
    const unsigned number = static_cast<unsigned>(writers_.size()) + 1;
    return writers_.emplace_back(absl::StrCat("w", number), "things", number).Write(Connect(), 10);
  }

  absl::Status WriteUntilRefused() {
    absl::Status status;
    while (status.ok()) status = WriteNewItems();
    return status;
  }

  // The server may have ended; it is started again.
  absl::Status WriteAfterRecovery() {
    absl::Status status;
    EXPECT_TRUE(WaitUntil([&] {
      postgres_.server().WaitForAnswer();
      status = WriteNewItems();
      return !absl::IsUnavailable(status);
    }));
    return status;
  }

  void CheckAfterPowerLoss() {
    postgres_.LosePower({});
    End();
    postgres_.Start();
    ASSERT_NO_FATAL_FAILURE(Start());
    Check();
    Report("full disks under PostgreSQL", kRounds);
  }

  PostgresOnDisk postgres_;
};

TEST_F(PostgresFullDisk, NoSpaceForTablesRefusesChanges) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    postgres_.disk().Fill("/base/");
    const absl::Status refused = WriteUntilRefused();
    EXPECT_THAT(refused, FailsWith(absl::StatusCode::kResourceExhausted, kDatabase));
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("No space left on device"), HasSubstr("(SQLSTATE 53100)")));
    Check();
    EXPECT_THAT(Search(), IsOk());
    postgres_.disk().MakeRoom();
    EXPECT_THAT(WriteNewItems(), IsOk());
    Check();
  }
  CheckAfterPowerLoss();
}

TEST_F(PostgresFullDisk, NoSpaceForLogRefusesChangesButNotSearches) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    postgres_.disk().Fill("/pg_wal/");
    EXPECT_THAT(WriteUntilRefused(),
                FailsWith(absl::StatusCode::kUnavailable,
                          absl::StrCat("the store is unavailable: ", kDatabase)));
    for (int search = 0; search < 10; ++search) EXPECT_THAT(Search(), IsOk());
    postgres_.disk().MakeRoom();
    EXPECT_THAT(WriteAfterRecovery(), IsOk());
    Check();
  }
  CheckAfterPowerLoss();
}

TEST_F(PostgresFullDisk, NoSpaceAtAllLosesNothing) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    postgres_.disk().Fill("");
    EXPECT_THAT(WriteUntilRefused(),
                AnyOf(FailsWith(absl::StatusCode::kResourceExhausted, kDatabase),
                      FailsWith(absl::StatusCode::kUnavailable, kDatabase)));
    EXPECT_THAT(Search(), IsOk());
    postgres_.disk().MakeRoom();
    EXPECT_THAT(WriteAfterRecovery(), IsOk());
    Check();
  }
  CheckAfterPowerLoss();
}

}  // namespace
}  // namespace privatemail::e2e
