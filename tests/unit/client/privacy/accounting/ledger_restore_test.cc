// Ledgers that were copied, restored, lost or damaged, or whose witness was: refused.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/ledger_state.h"
#include "client/privacy/accounting/ledger_witness.h"
#include "common/base/digests.h"
#include "common/sqlite/sqlite.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/client/privacy/accounting/ledger_fixture.h"

namespace privatemail::client {
namespace {

using LedgerRestore = LedgerTest;

void CopyState(const std::string& from, const std::string& to) {
  for (const char* suffix : {"", ".witness"}) Overwrite(from + suffix, to + suffix);
}

// Charge, Grant and Show refuse; History reads.
void ExpectRefused(const std::string& path, size_t changes_known) {
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)), FailsWith(kDataLoss, "restored"));
  EXPECT_THAT(ledger->Grant(kUuid, {2, 1e-5}), FailsWith(kDataLoss, "restored"));
  EXPECT_THAT(ledger->Show(kUuid), FailsWith(kDataLoss, "restored"));
  EXPECT_EQ(ledger->History(kUuid)->size(), changes_known);
}

TEST_F(LedgerRestore, LedgerAndWitnessRestoredIsRefused) {
  SpendTenths(path_, 2);
  CopyState(path_, folder_ / "backup");
  SpendTenths(path_, 3);
  CopyState(folder_ / "backup", path_);  // in place: the files keep their inodes
  ExpectRefused(path_, 3);
  EXPECT_THAT(Ledger::Open(path_).value()->Show(kUuid),
              FailsWith(kDataLoss, "both count 3 changes, but this witness is not the one"));
}

// As in a backup that runs between two releases.
TEST_F(LedgerRestore, LedgerAndWitnessOfDifferentTimesAreRefused) {
  SpendTenths(path_, 2);
  std::filesystem::copy_file(path_, folder_ / "backup");
  {
    const auto ledger = Open();
    ASSERT_THAT(ledger->Charge(kUuid, Costs(.5, 1e-6)), IsOk());
  }
  std::filesystem::copy_file(path_ + ".witness", folder_ / "backup.witness");
  Overwrite(folder_ / "backup", path_);
  ExpectRefused(path_, 3);  // the ledger alone
  Overwrite(folder_ / "backup.witness", path_ + ".witness");
  ExpectRefused(path_, 3);  // both
}

// The witness counts a change when the call that made it returns, not when the next one begins.
TEST_F(LedgerRestore, LedgerRestoredAfterOneChangeIsRefused) {
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
    Overwrite(folder / "backup", path);
    ExpectRefused(path, 3);
  }
}

// The state between the two writes of a change, made by hand.
TEST_F(LedgerRestore, NextChargeFinishesIncompleteChange) {
  SpendTenths(path_, 2);
  ASSERT_OK_AND_ASSIGN(const auto database, sqlite::Database::Open(path_));
  ASSERT_THAT(database->Execute("UPDATE state SET generation = generation + 1, "
                                "former_change = change, change = 'next'"),
              IsOk());
  const auto ledger = Open();
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
}

// As chmod -R, chown -R, touch, Kubernetes' fsGroup, cp -al, mv and a backup treat both files.
TEST_F(LedgerRestore, OrdinaryCareEndsNothing) {
  SpendTenths(path_, 1);
  const std::pair<const char*, std::function<void(const std::string&)>> cares[] = {
      {"mode", [](const std::string& file) { ASSERT_EQ(::chmod(file.c_str(), 0660), 0); }},
      {"equal mode", [](const std::string& file) { ASSERT_EQ(::chmod(file.c_str(), 0660), 0); }},
      {"owner",
       [](const std::string& file) {
         if (::geteuid() == 0) {
           ASSERT_EQ(::chown(file.c_str(), 1, 1), 0);
         }
         ASSERT_EQ(::chown(file.c_str(), ::geteuid(), ::getegid()), 0);
       }},
      {"times",
       [](const std::string& file) {
         ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), nullptr, 0), 0);
       }},
      {"link",
       [](const std::string& file) { std::filesystem::create_hard_link(file, file + "2"); }},
      {"name",
       [](const std::string& file) {
         std::filesystem::rename(file, file + "3");
         std::filesystem::rename(file + "3", file);
       }},
      {"copy", [](const std::string& file) { std::filesystem::copy_file(file, file + "4"); }}};
  for (const auto& [what, care] : cares) {
    SCOPED_TRACE(what);
    for (const char* suffix : {"", ".witness"}) care(path_ + suffix);
    EXPECT_THAT(Open()->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
  }
}

// A kept name of a former witness, put back with a ledger of its time, names its own file.
TEST_F(LedgerRestore, HardLinkToFormerWitnessIsNoWitness) {
  SpendTenths(path_, 2);
  std::filesystem::create_hard_link(path_ + ".witness", folder_ / "kept");
  std::filesystem::copy_file(path_, folder_ / "copy");
  ASSERT_THAT(Open()->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
  std::filesystem::rename(folder_ / "kept", path_ + ".witness");
  Overwrite(folder_ / "copy", path_);
  ExpectRefused(path_, 3);
}

// A record as it was once written, of which the ledger remembers the ctime.
TEST_F(LedgerRestore, WitnessThatNamesNoFileIsKnownByItsTime) {
  SpendTenths(path_, 1);
  const auto write = [&] {
    ASSERT_OK_AND_ASSIGN(const auto database, sqlite::Database::Open(path_));
    const std::string json = absl::StrCat(
        R"( {"written_at":1,"generation":2,"ledger":")", *database->Query("SELECT id FROM state"),
        R"(","change":")", *database->Query("SELECT change FROM state"), R"("})");
    const std::string text = absl::StrCat(json, std::string(447 - json.size(), ' '), "\n");
    std::ofstream(path_ + ".witness") << absl::BytesToHexString(Sha256::Of(text)) << text;
    const int64_t stamp = LedgerWitness(path_ + ".witness").Read()->stamp;
    ASSERT_THAT(database->Execute(absl::StrCat("UPDATE state SET witness_stamp = ", stamp)),
                IsOk());
  };
  ASSERT_NO_FATAL_FAILURE(write());
  EXPECT_THAT(Open()->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
  EXPECT_TRUE(LedgerWitness(path_ + ".witness").Read()->is_original);
}

TEST_F(LedgerRestore, PipeInPlaceOfAFileIsNamed) {
  SpendTenths(path_, 1);
  for (const char* suffix : {"-journal", "-wal", "-shm", ".witness"}) {
    const std::string pipe = path_ + suffix;
    std::filesystem::remove(pipe);
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const auto ledger = Ledger::Open(path_);
    const absl::Status status = ledger.ok() ? (*ledger)->Show(kUuid).status() : ledger.status();
    EXPECT_FALSE(absl::IsDataLoss(status));
    EXPECT_THAT(status, FailsWith(status.code(), pipe));
    std::filesystem::remove(pipe);
  }
}

TEST_F(LedgerRestore, AnySetOfFilesRestoredRefundsNothing) {
  constexpr int kRestores = 35;
  constexpr int kAffordable = 8;
  const std::vector<std::string> suffixes = {"", ".witness"};
  int refused = 0;
  for (int i = 0; i < kRestores; ++i) {
    const TemporaryFolder folder;
    const std::string path = folder / "ledger";
    int released = 0;
    const auto spend = [&](int most) {
      ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
      if (released == 0) {
        ASSERT_THAT(ledger->Grant(kUuid, {kAffordable * .1, 1e-5}), IsOk());
      }
      ledger->StartBatch(most);
      while (most-- > 0 && ledger->Charge(kUuid, Costs(.1, 1e-6)).ok()) ++released;
    };
    ASSERT_NO_FATAL_FAILURE(spend(2));
    for (const std::string& suffix : suffixes) Overwrite(path + suffix, folder / "copy" + suffix);
    ASSERT_NO_FATAL_FAILURE(spend(1 + i % 5));
    for (size_t f = 0; f < suffixes.size(); ++f) {
      if (((i % 3 + 1) >> f) % 2 != 0) Overwrite(folder / "copy" + suffixes[f], path + suffixes[f]);
    }
    const int before = released;
    ASSERT_NO_FATAL_FAILURE(spend(2 * kAffordable));
    EXPECT_LE(released, kAffordable) << i;
    refused += released == before ? 1 : 0;
  }
  EXPECT_GE(refused, kRestores);
}

// Two changes on top of the same one have the same count and different ids.
TEST_F(LedgerRestore, IncompleteChangeIsNotConfusedWithItsReplacement) {
  for (const char* put_back : {
           // Committed and not witnessed, then another change in its place.
           "former_change = (SELECT name FROM changes WHERE number = 2), change = 'cut short'",
           "former_change = '', change = ''",
       }) {
    const TemporaryFolder folder;
    const std::string path = folder / "ledger";
    SpendTenths(path, 2);
    {
      ASSERT_OK_AND_ASSIGN(const auto database, sqlite::Database::Open(path));
      ASSERT_THAT(database->Execute(absl::StrCat("UPDATE state SET ", put_back)), IsOk());
    }
    ExpectRefused(path, 3);
  }
}

// As if another ledger had replaced it between the two writes of a change.
TEST_F(LedgerRestore, ChangeLostBeforeConfirmationReturnsDataLoss) {
  SpendTenths(path_, 1);
  ASSERT_OK_AND_ASSIGN(const auto database, sqlite::Database::Open(path_));
  ASSERT_THAT(database->Execute("CREATE TRIGGER lose AFTER INSERT ON changes BEGIN "
                                "DELETE FROM changes WHERE number = NEW.number; END"),
              IsOk());
  const auto ledger = Open();
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)),
              FailsWith(kDataLoss, "just made is not in it"));
}

// Two processes with different ledger files (one restored while the other was open) share only the
// witness's lock.
TEST(LedgerWitness, ReplaceOfAnotherRecordReturnsAborted) {
  const TemporaryFolder folder;
  const LedgerWitness witness(folder / "witness");
  ASSERT_THAT(witness.Create({.ledger_id = "ledger", .change = "first"}), IsOk());
  ASSERT_OK_AND_ASSIGN(const LedgerWitness::Record first, witness.Read());
  ASSERT_THAT(witness.Replace(first, {.ledger_id = "ledger", .generation = 1, .change = "one"}),
              IsOk());
  EXPECT_THAT(witness.Replace(first, {.ledger_id = "ledger", .generation = 1, .change = "other"}),
              FailsWith(kAborted, "another ledger"));
  EXPECT_EQ(witness.Read()->change, "one");
}

// A process that waited for the lock of a witness gets that of a replaced file, whose content stays
// if the process that replaced it was killed.
TEST(LedgerWitness, ReplaceOfAReplacedFileReturnsAborted) {
  const TemporaryFolder folder;
  const std::string path = folder / "witness";
  const LedgerWitness witness(path);
  ASSERT_THAT(witness.Create({.ledger_id = "ledger", .change = "first"}), IsOk());
  ASSERT_OK_AND_ASSIGN(const LedgerWitness::Record first, witness.Read());
  const int held = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(held, LOCK_EX), 0);
  std::thread waits([&] {
    EXPECT_THAT(witness.Replace(first, {.ledger_id = "ledger", .generation = 1, .change = "late"}),
                FailsWith(kAborted, "another ledger"));
  });
  EXPECT_TRUE(WaitUntil([] {
    std::ifstream locks("/proc/locks");
    const std::string text(std::istreambuf_iterator<char>(locks), {});
    return text.find(absl::StrCat("-> FLOCK  ADVISORY  WRITE ", ::getpid(), " ")) !=
           std::string::npos;
  }));
  EXPECT_THAT(witness.Create({.ledger_id = "ledger", .generation = 1, .change = "one"}), IsOk());
  ::close(held);
  waits.join();
  EXPECT_EQ(witness.Read()->change, "one");
}

TEST(CompareWithWitness, EveryPartIsCompared) {
  using Record = LedgerWitness::Record;
  const LedgerState state{"ledger", 2, "last", "previous", 20, 10};
  const std::function<void(Record&)> faults[] = {
      [](Record& r) { r.ledger_id = "other"; }, [](Record& r) { r.generation += 5; },
      [](Record& r) { r.change = "other"; },
      [](Record& r) { r.is_original = false, r.stamp += r.stamp > 0; },
      [](Record& r) { r.is_original = false, r.stamp = 0; }};
  for (const auto& [record, match] :
       {std::pair(Record{"ledger", 2, "last", true}, LedgerMatch::kWitnessed),
        {Record{"ledger", 2, "last", false, 20}, LedgerMatch::kWitnessed},
        {Record{"ledger", 1, "previous", true}, LedgerMatch::kNotWitnessed},
        {Record{"ledger", 1, "previous", false, 10}, LedgerMatch::kNotWitnessed}}) {
    EXPECT_EQ(CompareWithWitness(state, record), match);
    for (const auto& fault : faults) {
      Record changed = record;
      fault(changed);
      EXPECT_EQ(CompareWithWitness(state, changed), LedgerMatch::kMismatch);
    }
  }
}

TEST_F(LedgerRestore, CopyAtAnotherPathIsRefused) {
  SpendTenths(path_, 2);
  CopyState(path_, folder_ / "copy");
  ExpectRefused(folder_ / "copy", 3);
  ASSERT_OK_AND_ASSIGN(const auto original, Ledger::Open(path_));
  EXPECT_THAT(original->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
}

TEST_F(LedgerRestore, LostLedgerOrWitnessIsRefused) {
  SpendTenths(path_, 2);
  std::filesystem::rename(path_ + ".witness", folder_ / "aside");
  ExpectRefused(path_, 3);
  std::filesystem::rename(folder_ / "aside", path_ + ".witness");
  std::filesystem::remove(path_);
  EXPECT_THAT(Ledger::Open(path_), FailsWith(kDataLoss, "its witness counts 3 changes"));
}

// A process that ends between creating a witness and its first record leaves it empty.
TEST_F(LedgerRestore, EmptyWitnessIsAcceptedForNewLedgerOnly) {
  std::ofstream(path_ + ".witness").close();
  SpendTenths(path_, 1);
  EXPECT_EQ(Ledger::Open(path_).value()->Show(kUuid)->releases, 1);
  std::filesystem::resize_file(path_ + ".witness", 0);
  ExpectRefused(path_, 2);
}

TEST_F(LedgerRestore, DamagedWitnessReturnsDataLoss) {
  SpendTenths(path_, 1);
  std::fstream(path_ + ".witness", std::ios::in | std::ios::out).seekp(100).put('#');
  const auto ledger = Open();
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)), FailsWith(kDataLoss, "digest"));
}

}  // namespace
}  // namespace privatemail::client
