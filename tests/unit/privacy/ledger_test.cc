#include "client/privacy/ledger.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/sqlite/sqlite.h"
#include "tests/testing/matchers.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail {
namespace {

constexpr char kUuid[] = "4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5";

Guarantee Costs(double epsilon, double delta) {
  return {
      .epsilon = epsilon, .delta = delta, .neighbours = "test", .proven = true, .source = "test"};
}

TEST(Ledger, RefusesUntilABudgetIsSet) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(folder / "ledger"));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)),
              FailsWith(absl::StatusCode::kFailedPrecondition, "privatemail budget set"));
}

TEST(Ledger, ExhaustionSaysWhatIsSpentAskedAndLeftAndChangesNothing) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(folder / "ledger"));
  ASSERT_THAT(ledger->Grant(kUuid, {1, 1e-5}), IsOk());
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.75, 1e-6)), IsOk());
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.5, 1e-6)),
              FailsWith(absl::StatusCode::kResourceExhausted,
                        "spent epsilon 0.75 delta 1e-06, asked epsilon 0.5 delta 1e-06, left "
                        "epsilon 0.25 delta 9e-06"));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 2e-5)),
              FailsWith(absl::StatusCode::kResourceExhausted, "delta"));
  ASSERT_OK_AND_ASSIGN(const LedgerEntry entry, ledger->Show(kUuid));
  EXPECT_EQ(entry.spent().epsilon, .75);
  EXPECT_EQ(entry.releases, 1);
}

TEST(Ledger, ThreeTenthsFitIntoThreeTenthsAndNoMore) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(folder / "ledger"));
  ASSERT_THAT(ledger->Grant(kUuid, {.3, 3e-6}), IsOk());
  for (int i = 0; i < 3; ++i) ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
  EXPECT_THAT(ledger->Charge(kUuid, Costs(1e-9, 0)),
              FailsWith(absl::StatusCode::kResourceExhausted, "left epsilon 0 "));
}

TEST(Ledger, IsKeptByCollectionAndSurvivesReopening) {
  const TemporaryFolder folder;
  {
    ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(folder / "ledger"));
    ASSERT_THAT(ledger->Grant(kUuid, {1, 1e-5}), IsOk());
    ASSERT_THAT(ledger->Charge(kUuid, Costs(.4, 1e-6)), IsOk());
  }
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(folder / "ledger"));
  ASSERT_OK_AND_ASSIGN(const LedgerEntry entry, ledger->Show(kUuid));
  EXPECT_EQ(entry.spent().epsilon, .4);
  EXPECT_EQ(entry.left().epsilon, .6);
  ASSERT_OK_AND_ASSIGN(const LedgerEntry other, ledger->Show("another"));
  EXPECT_FALSE(other.granted.has_value());
}

TEST(Ledger, ALowerGrantNeverRefunds) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(folder / "ledger"));
  ASSERT_THAT(ledger->Grant(kUuid, {1, 1e-5}), IsOk());
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.8, 1e-6)), IsOk());
  ASSERT_THAT(ledger->Grant(kUuid, {.5, 1e-5}), IsOk());
  EXPECT_EQ(ledger->Show(kUuid)->left().epsilon, 0);
  EXPECT_EQ(ledger->Show(kUuid)->spent().epsilon, .8);
}

TEST(Ledger, BadNumbersAreNamedAndNothingIsCharged) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(folder / "ledger"));
  const double nan = std::nan("");
  EXPECT_THAT(ledger->Grant(kUuid, {nan, .1}),
              FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
  EXPECT_THAT(ledger->Grant(kUuid, {1, 1}), FailsWith(absl::StatusCode::kInvalidArgument, "delta"));
  ASSERT_THAT(ledger->Grant(kUuid, {1, .1}), IsOk());
  EXPECT_THAT(ledger->Charge(kUuid, Costs(nan, .01)),
              FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(-1, .01)),
              FailsWith(absl::StatusCode::kInvalidArgument, "epsilon"));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, nan)),
              FailsWith(absl::StatusCode::kInvalidArgument, "delta"));
  EXPECT_EQ(ledger->Show(kUuid)->releases, 0);
}

TEST(Ledger, AFileThatIsNoLedgerIsRefusedByName) {
  const TemporaryFolder folder;
  std::ofstream(folder / "ledger")
      << "this is a diary, not a ledger; it is long enough to have a header of its own....";
  EXPECT_THAT(Ledger::Open(folder / "ledger"),
              FailsWith(absl::StatusCode::kDataLoss, folder / "ledger"));
  EXPECT_THAT(Ledger::Open(folder / "missing/ledger"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "missing/ledger"));
}

// Four processes and four threads each race for a budget of 20 charges.
TEST(Ledger, ManyAtOnceNeverSpendMoreThanGranted) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  {
    ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
    ASSERT_THAT(ledger->Grant(kUuid, {2, 1e-4}), IsOk());
  }
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const auto ledger = Ledger::Open(path);
      if (!ledger.ok()) _exit(1);
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          for (int i = 0; i < 3; ++i) (void)(*ledger)->Charge(kUuid, Costs(.1, 1e-6));
        });
      }
      for (std::thread& thread : threads) thread.join();
      _exit(0);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int state = 0;
    ASSERT_EQ(waitpid(pid, &state, 0), pid);
    EXPECT_EQ(state, 0);
  }
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
  EXPECT_EQ(ledger->Show(kUuid)->releases, 20);
}

// A child reports each charge after it returned and is killed at some instant: all it reported are
// there, and at most one more.
TEST(Ledger, WhatWasChargedBeforeAKillIsThere) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  ASSERT_OK_AND_ASSIGN(auto ledger, Ledger::Open(path));
  ASSERT_THAT(ledger->Grant(kUuid, {1e6, .9}), IsOk());
  int64_t before = 0;
  for (int round = 0; round < 8; ++round) {
    int report[2];
    ASSERT_EQ(pipe(report), 0);
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const auto own = Ledger::Open(path);
      while (own.ok() && (*own)->Charge(kUuid, Costs(.1, 1e-9)).ok()) {
        if (write(report[1], "x", 1) != 1) break;
      }
      _exit(1);
    }
    close(report[1]);
    usleep(15'000 + 7'000 * round);
    ASSERT_EQ(kill(pid, SIGKILL), 0);
    int64_t reported = 0;
    char byte = 0;
    while (read(report[0], &byte, 1) == 1) ++reported;
    close(report[0]);
    ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
    ASSERT_OK_AND_ASSIGN(ledger, Ledger::Open(path));
    const int64_t now = ledger->Show(kUuid)->releases;
    EXPECT_GE(now - before, reported);
    EXPECT_LE(now - before, reported + 1);
    before = now;
  }
  EXPECT_GT(before, 0);
}

// A ledger with a grant of 1 and `charges` charges of .1.
void SpendTenths(const std::string& path, int charges) {
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
  ASSERT_THAT(ledger->Grant(kUuid, {1, 1e-5}), IsOk());
  for (int i = 0; i < charges; ++i) ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
}

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

TEST(Ledger, ARestoredLedgerRefundsNothingAndRefuses) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  SpendTenths(path, 2);
  CopyState(path, folder / "backup");
  SpendTenths(path, 3);
  CopyState(folder / "backup", path);  // in place: the files keep their inodes
  ExpectDistrusted(path, 3);
}

TEST(Ledger, ALedgerRestoredWithoutItsWitnessRefuses) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  SpendTenths(path, 2);
  std::filesystem::copy_file(path, folder / "backup");
  SpendTenths(path, 2);
  std::filesystem::copy_file(folder / "backup", path,
                             std::filesystem::copy_options::overwrite_existing);
  ExpectDistrusted(path, 3);
}

// The ledger of one moment and the witness of the next, as a backup that runs between two releases
// would hold them.
TEST(Ledger, ALedgerAndAWitnessOfDifferentMomentsRefuse) {
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

// The instants between the two writes of a change, made by hand.
TEST(Ledger, WhoeverComesNextFinishesAChangeThatWasCutShort) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  SpendTenths(path, 2);
  const auto forget_witness = [&](int64_t generations) {
    ASSERT_OK_AND_ASSIGN(const auto database, sqlite::Database::Open(path));
    ASSERT_THAT(database->Execute(absl::StrCat("UPDATE state SET generation = generation + ",
                                               generations, ", former_stamp = CASE ", generations,
                                               " WHEN 1 THEN witness_stamp ELSE "
                                               "former_stamp END, witness_stamp = 0")),
                IsOk());
  };
  for (const int64_t made_but_not_witnessed : {1, 0}) {
    forget_witness(made_but_not_witnessed);
    ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
    EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
  }
}

TEST(Ledger, AWitnessThatIsOlderThanItsWriteIsNoWitness) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  SpendTenths(path, 1);
  ASSERT_OK_AND_ASSIGN(const auto database, sqlite::Database::Open(path));
  ASSERT_THAT(database->Execute("UPDATE state SET witness_stamp = 0"), IsOk());
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  ASSERT_EQ(::chmod((path + ".witness").c_str(), 0600), 0);  // stamps it anew, like a copy
  ExpectDistrusted(path, 2);
}

Guarantee Gaussian(double epsilon, double delta, double mu) {
  Guarantee guarantee = Costs(epsilon, delta);
  guarantee.gaussian_mu = mu;
  return guarantee;
}

// 40 releases of mu .1 have mu .1 sqrt(40) together: at delta 1e-5 epsilon 2.594383 (by scipy),
// where sums say 40 * .341; a 41st makes it 2.6308.
TEST(Ledger, GaussianAccountingAddsMuAndChargesLess) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(folder / "ledger"));
  ASSERT_THAT(ledger->Grant(kUuid, {2.6, 1e-5}, Accounting::kGaussian), IsOk());
  const Guarantee one = Gaussian(.341, 1e-5, .1);
  for (int i = 0; i < 40; ++i) ASSERT_THAT(ledger->Charge(kUuid, one), IsOk()) << i;
  ASSERT_OK_AND_ASSIGN(const LedgerEntry entry, ledger->Show(kUuid));
  EXPECT_NEAR(*entry.gaussian_mu, .1 * std::sqrt(40), 1e-12);
  EXPECT_NEAR(entry.spent().epsilon, 2.5943833805, 1e-4);
  EXPECT_EQ(entry.spent().delta, 1e-5);
  EXPECT_NEAR(entry.SpentBy(Accounting::kBasic).epsilon, 13.64, 1e-9);
  EXPECT_THAT(ledger->Charge(kUuid, one), FailsWith(absl::StatusCode::kResourceExhausted, "spent"));
  EXPECT_EQ(ledger->Show(kUuid)->releases, 40);
}

TEST(Ledger, GaussianAccountingTakesPureReleasesAndRefusesWhatHasNoMu) {
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(folder / "ledger"));
  ASSERT_THAT(ledger->Grant(kUuid, {10, 1e-5}, Accounting::kGaussian), IsOk());
  EXPECT_THAT(ledger->Charge(kUuid, Costs(1, 0)), IsOk());
  EXPECT_THAT(ledger->Charge(kUuid, Costs(1, 1e-6)),
              FailsWith(absl::StatusCode::kFailedPrecondition, "delta 0"));
  Guarantee printed = Gaussian(1, 1e-6, .1);
  printed.proven = false;
  EXPECT_THAT(ledger->Charge(kUuid, printed),
              FailsWith(absl::StatusCode::kFailedPrecondition, "proven"));
  EXPECT_EQ(ledger->Show(kUuid)->releases, 1);
}

TEST(Ledger, ACopyElsewhereRefuses) {
  const TemporaryFolder folder;
  SpendTenths(folder / "ledger", 2);
  CopyState(folder / "ledger", folder / "copy");
  ExpectDistrusted(folder / "copy", 3);
  ASSERT_OK_AND_ASSIGN(const auto original, Ledger::Open(folder / "ledger"));
  EXPECT_THAT(original->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
}

TEST(Ledger, ALostLedgerOrWitnessRefuses) {
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
TEST(Ledger, AnEmptyWitnessIsTheBeginningOfANewLedgerAndOfNoOther) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  std::ofstream(path + ".witness").close();
  SpendTenths(path, 1);
  EXPECT_EQ(Ledger::Open(path).value()->Show(kUuid)->releases, 1);
  std::filesystem::resize_file(path + ".witness", 0);
  ExpectDistrusted(path, 2);
}

TEST(Ledger, ADamagedWitnessIsNamed) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  SpendTenths(path, 1);
  std::fstream(path + ".witness", std::ios::in | std::ios::out).seekp(100).put('#');
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)),
              FailsWith(absl::StatusCode::kDataLoss, "digest"));
}

TEST(Ledger, HistoryHoldsEveryGrantAndChargeOldestFirst) {
  const TemporaryFolder folder;
  SpendTenths(folder / "ledger", 2);
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(folder / "ledger"));
  ASSERT_OK_AND_ASSIGN(const std::vector<LedgerChange> changes, ledger->History(kUuid));
  ASSERT_EQ(changes.size(), 3);
  EXPECT_EQ(changes[0].kind, LedgerChange::Kind::kGrant);
  EXPECT_EQ(changes[0].epsilon, 1);
  EXPECT_EQ(changes[2].kind, LedgerChange::Kind::kCharge);
  EXPECT_EQ(changes[2].epsilon, .1);
  EXPECT_TRUE(changes[2].proven);
  EXPECT_TRUE(ledger->History("another")->empty());
}

}  // namespace
}  // namespace privatemail
