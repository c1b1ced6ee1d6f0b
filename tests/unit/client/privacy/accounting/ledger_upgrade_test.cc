// Migration of ledgers of schema 3.
#include <openssl/sha.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/sqlite/sqlite.h"
#include "privatemail/ledger.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/client/privacy/accounting/ledger_fixture.h"

namespace privatemail::client {
namespace {

using LedgerMigration = LedgerTest;

// The tables of schema 3: a grant of 1 and a charge of .75.
constexpr char kTables[] = R"sql(
  PRAGMA application_id = 1347243079;
  PRAGMA user_version = 3;
  CREATE TABLE state(
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id TEXT NOT NULL, generation INTEGER NOT NULL, witness_stamp INTEGER NOT NULL,
    former_stamp INTEGER NOT NULL) STRICT;
  CREATE TABLE changes(
    number INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL, collection TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL,
    gaussian_mu REAL, accounting INTEGER NOT NULL,
    neighbours TEXT NOT NULL, proven INTEGER NOT NULL, source TEXT NOT NULL, made_at TEXT NOT NULL) STRICT;
  CREATE INDEX changes_of_collection ON changes(collection, kind);
  INSERT INTO changes VALUES
    (1, 1, '4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5', 1, 1e-5, NULL, 0, '', 0, '', '2024-01-01T00:00:00Z'),
    (2, 2, '4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5', .75, 1e-6, NULL, 0, 'test', 1, 'test', '2024-01-01T00:00:00Z');
)sql";

// Format 2; returns its stamp.
int64_t WriteWitness(const std::string& path, int generation) {
  std::string text =
      absl::StrCat(R"( {"format":2,"generation":)", generation,
                   R"(,"ledger":"17f2a","written_at":)", absl::GetCurrentTimeNanos(), "}");
  text.resize(447, ' ');
  text += '\n';
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  std::ofstream(path) << absl::BytesToHexString(absl::string_view(
                             reinterpret_cast<const char*>(digest), sizeof(digest)))
                      << text;
  struct stat status = {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec;
}

// A ledger of two changes whose witness counts `witnessed` of them.
void MakeSchema3Ledger(const std::string& path, int witnessed, bool confirmed) {
  const int64_t stamp = WriteWitness(path + ".witness", witnessed);
  ASSERT_OK_AND_ASSIGN(const auto database, sqlite::Database::Open(path));
  ASSERT_THAT(database->Execute(kTables), IsOk());
  ASSERT_THAT(
      database->Execute(absl::StrCat("INSERT INTO state VALUES (1, '17f2a', 2, ",
                                     confirmed ? stamp : 0, ", ", witnessed == 1 ? stamp : 5, ")")),
      IsOk());
}

TEST_F(LedgerMigration, KeepsChargesAndAcceptsMore) {
  for (const bool last_change_was_witnessed : {true, false}) {
    const TemporaryFolder folder;
    const std::string path = folder / "ledger";
    MakeSchema3Ledger(path, last_change_was_witnessed ? 2 : 1, last_change_was_witnessed);
    {
      ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
      EXPECT_EQ(ledger->Show(kUuid)->spent().epsilon, .75);
      EXPECT_THAT(ledger->Charge(kUuid, Costs(.125, 1e-6)), IsOk());
    }
    ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
    EXPECT_EQ(ledger->Show(kUuid)->spent().epsilon, .875);
    EXPECT_THAT(ledger->Charge(kUuid, Costs(.25, 1e-6)),
                FailsWith(absl::StatusCode::kResourceExhausted, "left epsilon 0.125"));
    EXPECT_EQ(ledger->History(kUuid)->size(), 3);
  }
}

TEST_F(LedgerMigration, UnconfirmedChangeWithoutIdIsRefused) {
  MakeSchema3Ledger(path_, 2, /*confirmed=*/false);
  const auto ledger = Open();
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.125, 1e-6)),
              FailsWith(absl::StatusCode::kDataLoss, "does not match its witness"));
  EXPECT_EQ(ledger->History(kUuid)->size(), 2);
}

TEST_F(LedgerMigration, CopyFromBeforeIsRefused) {
  for (const bool last_change_was_witnessed : {true, false}) {
    const TemporaryFolder folder;
    const std::string path = folder / "ledger";
    MakeSchema3Ledger(path, last_change_was_witnessed ? 2 : 1, last_change_was_witnessed);
    std::filesystem::copy_file(path, folder / "copy");
    ASSERT_THAT(Ledger::Open(path).value()->Charge(kUuid, Costs(.125, 1e-6)), IsOk());
    Overwrite(folder / "copy", path);
    EXPECT_THAT(Ledger::Open(path).value()->Show(kUuid),
                FailsWith(absl::StatusCode::kDataLoss, "does not match its witness"));
  }
}

}  // namespace
}  // namespace privatemail::client
