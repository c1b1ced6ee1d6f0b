// A ledger that was copied, restored, lost or damaged, or whose witness was: it spends nothing
// more.
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/ledger_witness.h"
#include "common/sqlite/sqlite.h"
#include "privatemail/ledger.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/client/privacy/accounting/ledger_fixture.h"

namespace privatemail::client {
namespace {

void CopyState(const std::string& from, const std::string& to) {
  for (const char* suffix : {"", ".witness"}) {
    std::filesystem::copy_file(from + suffix, to + suffix,
                               std::filesystem::copy_options::overwrite_existing);
  }
}

// Refuses to spend and to grant, yet shows what it knows.
void ExpectDistrusted(const std::string& path, size_t changes_known) {
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)),
              FailsWith(absl::StatusCode::kDataLoss, "restored"));
  EXPECT_THAT(ledger->Grant(kUuid, {2, 1e-5}), FailsWith(absl::StatusCode::kDataLoss, "restored"));
  EXPECT_THAT(ledger->Show(kUuid), FailsWith(absl::StatusCode::kDataLoss, "restored"));
  EXPECT_EQ(ledger->History(kUuid)->size(), changes_known);
}

TEST(LedgerRestore, LedgerAndWitnessRestoredIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  SpendTenths(path, 2);
  CopyState(path, folder / "backup");
  SpendTenths(path, 3);
  CopyState(folder / "backup", path);  // in place: the files keep their inodes
  ExpectDistrusted(path, 3);
  EXPECT_THAT(Ledger::Open(path).value()->Show(kUuid),
              FailsWith(absl::StatusCode::kDataLoss,
                        "both count 3 changes, but this witness is not the one"));
}

// The ledger of one moment and the witness of the next, as a backup that runs between two releases
// would hold them.
TEST(LedgerRestore, LedgerAndWitnessOfDifferentTimesAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  const auto overwrite = std::filesystem::copy_options::overwrite_existing;
  SpendTenths(path, 2);
  std::filesystem::copy_file(path, folder / "backup");
  {
    ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
    ASSERT_THAT(ledger->Charge(kUuid, Costs(.5, 1e-6)), IsOk());
  }
  std::filesystem::copy_file(path + ".witness", folder / "backup.witness");
  std::filesystem::copy_file(folder / "backup", path, overwrite);
  ExpectDistrusted(path, 3);  // the ledger alone
  std::filesystem::copy_file(folder / "backup.witness", path + ".witness", overwrite);
  ExpectDistrusted(path, 3);  // both
}

// The witness counts a change when the call that made it returns, not when the next one begins.
TEST(LedgerRestore, LedgerRestoredAfterOneChangeIsRefused) {
  for (const bool grant : {false, true}) {
    const TemporaryFolder folder;
    const std::string path = folder / "ledger";
    SpendTenths(path, 2);
    std::filesystem::copy_file(path, folder / "backup");
    {
      ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
      ASSERT_THAT(grant ? ledger->Grant(kUuid, {.5, 1e-5})
                        : ledger->Charge(kUuid, Costs(.1, 1e-6)).status(),
                  IsOk());
    }
    std::filesystem::copy_file(folder / "backup", path,
                               std::filesystem::copy_options::overwrite_existing);
    ExpectDistrusted(path, 3);
  }
}

// The instants between the two writes of a change, made by hand.
TEST(LedgerRestore, NextChargeFinishesIncompleteChange) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  SpendTenths(path, 2);
  for (const char* cut : {"generation = generation + 1, former_change = change, change = 'next', "
                          "former_stamp = witness_stamp, witness_stamp = 0",
                          "witness_stamp = 0"}) {
    {
      ASSERT_OK_AND_ASSIGN(const auto database, sqlite::Database::Open(path));
      ASSERT_THAT(database->Execute(absl::StrCat("UPDATE state SET ", cut)), IsOk());
    }
    ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
    EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
  }
}

// Two changes on top of the same one have the same count, and names of their own.
TEST(LedgerRestore, IncompleteChangeIsNotConfusedWithItsReplacement) {
  for (const char* put_back : {
           // Made and not witnessed, then another change instead of it.
           "former_change = (SELECT name FROM changes WHERE number = 2), change = 'cut short'",
           // The same, of which no one knows what it was made on top of.
           "former_change = '', change = ''",
       }) {
    const TemporaryFolder folder;
    const std::string path = folder / "ledger";
    SpendTenths(path, 2);
    {
      ASSERT_OK_AND_ASSIGN(const auto database, sqlite::Database::Open(path));
      ASSERT_THAT(database->Execute(absl::StrCat("UPDATE state SET witness_stamp = 0, ", put_back)),
                  IsOk());
    }
    ExpectDistrusted(path, 3);
  }
}

// As if another ledger had been put in its place between the two writes of a change.
TEST(LedgerRestore, ChangeLostBeforeConfirmationReturnsDataLoss) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  SpendTenths(path, 1);
  ASSERT_OK_AND_ASSIGN(const auto database, sqlite::Database::Open(path));
  ASSERT_THAT(database->Execute("CREATE TRIGGER lose AFTER INSERT ON changes BEGIN "
                                "DELETE FROM changes WHERE number = NEW.number; END"),
              IsOk());
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)),
              FailsWith(absl::StatusCode::kDataLoss, "just made is not in it"));
}

// Two processes whose ledgers are different files (one was put back while the other was open) hold
// no lock in common but the witness's.
TEST(LedgerWitness, ReplaceOfAnotherRecordReturnsAborted) {
  const TemporaryFolder folder;
  const LedgerWitness witness(folder / "witness");
  ASSERT_THAT(witness.Create({.ledger_id = "ledger", .change = "first"}), IsOk());
  ASSERT_OK_AND_ASSIGN(const LedgerWitness::Record first, witness.Read());
  ASSERT_THAT(witness.Replace(first, {.ledger_id = "ledger", .generation = 1, .change = "one"}),
              IsOk());
  EXPECT_THAT(witness.Replace(first, {.ledger_id = "ledger", .generation = 1, .change = "other"}),
              FailsWith(absl::StatusCode::kAborted, "another ledger"));
  EXPECT_EQ(witness.Read()->change, "one");
}

TEST(LedgerRestore, WitnessStampedLongAfterItsWriteIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  SpendTenths(path, 1);
  ASSERT_OK_AND_ASSIGN(const auto database, sqlite::Database::Open(path));
  ASSERT_THAT(database->Execute("UPDATE state SET witness_stamp = 0"), IsOk());
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  ASSERT_EQ(::chmod((path + ".witness").c_str(), 0600), 0);  // stamps it anew, like a copy
  ExpectDistrusted(path, 2);
}

TEST(LedgerRestore, CopyAtAnotherPathIsRefused) {
  const TemporaryFolder folder;
  SpendTenths(folder / "ledger", 2);
  CopyState(folder / "ledger", folder / "copy");
  ExpectDistrusted(folder / "copy", 3);
  ASSERT_OK_AND_ASSIGN(const auto original, Ledger::Open(folder / "ledger"));
  EXPECT_THAT(original->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
}

TEST(LedgerRestore, LostLedgerOrWitnessIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  SpendTenths(path, 2);
  std::filesystem::rename(path + ".witness", folder / "aside");
  ExpectDistrusted(path, 3);
  std::filesystem::rename(folder / "aside", path + ".witness");
  std::filesystem::remove(path);
  EXPECT_THAT(Ledger::Open(path),
              FailsWith(absl::StatusCode::kDataLoss, "its witness counts 3 changes"));
}

// A process that ended between the making of a witness and its first record leaves it empty.
TEST(LedgerRestore, EmptyWitnessIsAcceptedForNewLedgerOnly) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  std::ofstream(path + ".witness").close();
  SpendTenths(path, 1);
  EXPECT_EQ(Ledger::Open(path).value()->Show(kUuid)->releases, 1);
  std::filesystem::resize_file(path + ".witness", 0);
  ExpectDistrusted(path, 2);
}

TEST(LedgerRestore, DamagedWitnessReturnsDataLoss) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  SpendTenths(path, 1);
  std::fstream(path + ".witness", std::ios::in | std::ios::out).seekp(100).put('#');
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)),
              FailsWith(absl::StatusCode::kDataLoss, "digest"));
}

}  // namespace
}  // namespace privatemail::client
