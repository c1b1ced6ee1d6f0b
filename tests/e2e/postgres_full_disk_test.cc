// A daemon whose PostgreSQL server finds no space on its disk: for its tables, which it survives,
// for its log, which ends it, or for both. Changes are refused, naming the store; searches go on;
// nothing that was acknowledged is lost; and with space everything works again.
#include <chrono>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/e2e/at_work.h"
#include "tests/testing/matchers.h"
#include "tests/testing/postgres_on_disk.h"

namespace privatemail::e2e {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kRounds = 3;
constexpr char kPlace[] = "database test1 at 127.0.0.1:";

class PostgresFullDisk : public AtWork {
 protected:
  void SetUp() override {
    const std::string conninfo = postgres_.server().NewDatabase();
    // The log grows, as where a replica or an archive has fallen behind: without, PostgreSQL writes
    // over the files that it has.
    PostgresServer::Ask(conninfo, "ALTER SYSTEM SET wal_keep_size = '1GB'");
    PostgresServer::Ask(conninfo, "SELECT pg_reload_conf()");
    UsePostgres(conninfo);
    ASSERT_NO_FATAL_FAILURE(Prepare());
  }

  absl::Status Search() const {
    const auto things = Connect().GetCollection("things");
    if (!things.ok()) return things.status();
    v1::RetrieveRequest request = RandomSearch(*things);
    request.set_k(5);
    return Connect().Retrieve(request).status();
  }

  // With ids of its own, which take space whatever has become of others'.
  absl::Status WriteAsSomebodyNew() {
    const unsigned number = static_cast<unsigned>(writers_.size()) + 1;
    return writers_.emplace_back(absl::StrCat("w", number), "things", number).Write(Connect(), 10);
  }

  absl::Status WriteUntilRefused() {
    absl::Status status;
    while (status.ok()) status = WriteAsSomebodyNew();
    return status;
  }

  // The server may end, and be started again, by itself and by whoever looks after it.
  absl::Status WriteOnceItIsBack() {
    absl::Status status;
    for (int attempt = 0; attempt < 300; ++attempt) {
      postgres_.server().AwaitAnswer();
      status = WriteAsSomebodyNew();
      if (!absl::IsUnavailable(status)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return status;
  }

  // What is acknowledged is so on the disk, too.
  void CheckAfterALossOfPower() {
    postgres_.LosePower({});
    End();
    postgres_.Start();
    ASSERT_NO_FATAL_FAILURE(Start());
    Check();
    Report("full disks under PostgreSQL", kRounds);
  }

  PostgresOnDisk postgres_;
};

TEST_F(PostgresFullDisk, WithoutSpaceForTablesChangesAreRefusedNamingTheStore) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    postgres_.disk().Fill("/base/");
    const absl::Status refused = WriteUntilRefused();
    EXPECT_THAT(refused, FailsWith(absl::StatusCode::kResourceExhausted, kPlace));
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("No space left on device"), HasSubstr("(SQLSTATE 53100)")));
    Check();  // reads are answered all the while
    EXPECT_THAT(Search(), IsOk());
    postgres_.disk().MakeRoom();
    EXPECT_THAT(WriteAsSomebodyNew(), IsOk());
    Check();
  }
  CheckAfterALossOfPower();
}

TEST_F(PostgresFullDisk, WithoutSpaceForTheLogChangesAreRefusedAndSearchesGoOn) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    postgres_.disk().Fill("/pg_wal/");
    EXPECT_THAT(WriteUntilRefused(), FailsWith(absl::StatusCode::kUnavailable,
                                               absl::StrCat("the store is unavailable: ", kPlace)));
    for (int search = 0; search < 10; ++search) EXPECT_THAT(Search(), IsOk());
    postgres_.disk().MakeRoom();
    EXPECT_THAT(WriteOnceItIsBack(), IsOk());
    Check();
  }
  CheckAfterALossOfPower();
}

TEST_F(PostgresFullDisk, WithoutSpaceForAnythingNothingIsLost) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    postgres_.disk().Fill("");
    EXPECT_THAT(WriteUntilRefused(), AnyOf(FailsWith(absl::StatusCode::kResourceExhausted, kPlace),
                                           FailsWith(absl::StatusCode::kUnavailable, kPlace)));
    EXPECT_THAT(Search(), IsOk());
    postgres_.disk().MakeRoom();
    EXPECT_THAT(WriteOnceItIsBack(), IsOk());
    Check();
  }
  CheckAfterALossOfPower();
}

}  // namespace
}  // namespace privatemail::e2e
