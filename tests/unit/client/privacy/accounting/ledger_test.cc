#include "privatemail/ledger.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>
#include <vector>

#include "client/privacy/accounting/ledger_witness.h"
#include "tests/unit/client/privacy/accounting/ledger_fixture.h"

namespace privatemail::client {
namespace {

TEST_F(LedgerTest, ChargeWithoutGrantIsRefused) {
  const auto ledger = Open();
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)),
              FailsWith(kFailedPrecondition, "budget must be granted"));
}

TEST_F(LedgerTest, ExhaustedBudgetIsReportedAndNotCharged) {
  const auto ledger = OpenGranted({1, 1e-5});
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.75, 1e-6)), IsOk());
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.5, 1e-6)),
              FailsWith(kExhausted,
                        "budget must be left for epsilon 0.5 delta 1e-06, but is exhausted in "
                        "epsilon: spent epsilon 0.75 delta 1e-06, left epsilon 0.25 delta 9e-06"));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 2e-5)), FailsWith(kExhausted, "delta"));
  ASSERT_OK_AND_ASSIGN(const LedgerEntry entry, ledger->Show(kUuid));
  EXPECT_EQ(entry.spent().epsilon, .75);
  EXPECT_EQ(entry.releases, 1);
}

TEST_F(LedgerTest, ThreeTenthsFitExactly) {
  const auto ledger = OpenGranted({.3, 3e-6});
  for (int i = 0; i < 3; ++i) ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
  EXPECT_THAT(ledger->Charge(kUuid, Costs(1e-9, 0)), FailsWith(kExhausted, "left epsilon 0 "));
}

TEST_F(LedgerTest, EntriesAreByCollectionAndSurviveReopening) {
  {
    const auto ledger = Open();
    ASSERT_THAT(ledger->Grant(kUuid, {1, 1e-5}), IsOk());
    ASSERT_THAT(ledger->Charge(kUuid, Costs(.4, 1e-6)), IsOk());
  }
  const auto ledger = Open();
  ASSERT_OK_AND_ASSIGN(const LedgerEntry entry, ledger->Show(kUuid));
  EXPECT_EQ(entry.spent().epsilon, .4);
  EXPECT_EQ(entry.left().epsilon, .6);
  ASSERT_OK_AND_ASSIGN(const LedgerEntry other, ledger->Show("another"));
  EXPECT_FALSE(other.granted.has_value());
}

TEST_F(LedgerTest, LowerGrantKeepsCharges) {
  const auto ledger = OpenGranted({1, 1e-5});
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.8, 1e-6)), IsOk());
  ASSERT_THAT(ledger->Grant(kUuid, {.5, 1e-5}), IsOk());
  EXPECT_EQ(ledger->Show(kUuid)->left().epsilon, 0);
  EXPECT_EQ(ledger->Show(kUuid)->spent().epsilon, .8);
}

TEST_F(LedgerTest, BadNumbersAreNamedAndNotCharged) {
  const auto ledger = Open();
  const double nan = std::nan("");
  EXPECT_THAT(ledger->Grant(kUuid, {nan, .1}), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(ledger->Grant(kUuid, {1, 1}), FailsWith(kInvalid, "delta"));
  EXPECT_THAT(ledger->Grant(kUuid, {1, -.1}), FailsWith(kInvalid, "delta"));
  EXPECT_THAT(ledger->Grant(kUuid, {1, nan}), FailsWith(kInvalid, "delta"));
  for (const double delta : {0., 1., nan}) {
    EXPECT_THAT(ledger->Grant(kUuid, {1, delta}, Accounting::kGaussian),
                FailsWith(kInvalid, "delta must be strictly"));
  }
  ASSERT_THAT(ledger->Grant(kUuid, {1, .1}), IsOk());
  EXPECT_THAT(ledger->Charge(kUuid, Costs(nan, .01)), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(-1, .01)), FailsWith(kInvalid, "epsilon"));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, nan)), FailsWith(kInvalid, "delta"));
  EXPECT_EQ(ledger->Show(kUuid)->releases, 0);
}

TEST_F(LedgerTest, ForeignFileIsRefusedByName) {
  std::ofstream(path_)
      << "this is a diary, not a ledger; it is long enough to have a header of its own....";
  EXPECT_THAT(Ledger::Open(path_), FailsWith(kDataLoss, path_));
  EXPECT_THAT(Ledger::Open(folder_ / "missing/ledger"),
              FailsWith(kFailedPrecondition, "missing/ledger"));
}

// Four processes and four threads each race for a budget of 20 charges.
TEST_F(LedgerTest, ConcurrentProcessesNeverOverspend) {
  ASSERT_THAT(Open()->Grant(kUuid, {2, 1e-4}), IsOk());
  SpendInProcesses(path_, 4, [](Ledger& ledger, int /*child*/) {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 3; ++i) (void)ledger.Charge(kUuid, Costs(.1, 1e-6));
      });
    }
  });
  EXPECT_EQ(Open()->Show(kUuid)->releases, 20);
}

// 40 releases of mu .1 compose to mu .1 sqrt(40): epsilon 2.594383 at delta 1e-5 (scipy), against
// 40 * .341 by sums; a 41st makes it 2.6308.
TEST_F(LedgerTest, GaussianAccountingAddsSquaredMu) {
  const auto ledger = OpenGranted({2.6, 1e-5}, Accounting::kGaussian);
  ledger->StartBatch(100);
  const Guarantee one = Gaussian(.341, 1e-5, .1);
  for (int i = 0; i < 40; ++i) ASSERT_THAT(ledger->Charge(kUuid, one), IsOk()) << i;
  ASSERT_OK_AND_ASSIGN(const LedgerEntry entry, ledger->Show(kUuid));
  EXPECT_NEAR(*entry.gaussian_mu, .1 * std::sqrt(40), 1e-12);
  EXPECT_NEAR(entry.spent().epsilon, 2.5943833805, 1e-4);
  EXPECT_EQ(entry.spent().delta, 1e-5);
  EXPECT_NEAR(entry.SpentBy(Accounting::kBasic).epsilon, 13.64, 1e-9);
  EXPECT_THAT(
      ledger->Charge(kUuid, one),
      FailsWith(kExhausted,
                "by Gaussian accounting what was spent and what is asked are epsilon 2.630"));
  EXPECT_EQ(ledger->Show(kUuid)->releases, 40);
}

TEST_F(LedgerTest, AccountingChangesAmongGaussianChargesOnly) {
  const auto ledger = OpenGranted({3, 1e-4});
  ASSERT_THAT(ledger->Charge(kUuid, Gaussian(.341, 1e-5, .1)), IsOk());
  ASSERT_THAT(ledger->Grant(kUuid, {3, 1e-4}, Accounting::kGaussian), IsOk());
  ASSERT_THAT(ledger->Grant(kUuid, {3, 1e-4}, Accounting::kBasic), IsOk());
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.5, 0)), IsOk());
  EXPECT_THAT(ledger->Grant(kUuid, {3, 1e-4}, Accounting::kGaussian),
              FailsWith(kFailedPrecondition,
                        "accounting cannot change after releases with delta 0, expected basic as "
                        "before: 1 of 2 releases have delta 0"));
  EXPECT_EQ(ledger->Show(kUuid)->accounting, Accounting::kBasic);
  EXPECT_EQ(ledger->Show(kUuid)->pure_releases, 1);
  EXPECT_THAT(ledger->Grant(kUuid, {4, 1e-4}), IsOk());
}

TEST_F(LedgerTest, GrantWithoutDeltaPaysForPureReleasesOnly) {
  const auto ledger = OpenGranted({1, 0});
  for (int i = 0; i < 3; ++i) ASSERT_THAT(ledger->Charge(kUuid, Costs(.3, 0)), IsOk()) << i;
  EXPECT_THAT(
      ledger->Charge(kUuid, Costs(.05, 1e-300)),
      FailsWith(kExhausted,
                "budget must be granted with a delta for releases that spend delta 1e-300"));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.2, 0)),
              FailsWith(kExhausted, "spent epsilon 0.9 delta 0"));
  ASSERT_THAT(ledger->Grant("another", {1, .1}), IsOk());
  ASSERT_THAT(ledger->Charge("another", Costs(.1, .01)), IsOk());
  ASSERT_THAT(ledger->Grant("another", {1, 0}), IsOk());
  EXPECT_THAT(ledger->Charge("another", Costs(.1, 0)),
              FailsWith(kExhausted, "exhausted in delta: spent epsilon 0.1 delta 0.01"));
  ASSERT_OK_AND_ASSIGN(const LedgerEntry entry, ledger->Show(kUuid));
  EXPECT_EQ(entry.releases, 3);
  EXPECT_NEAR(entry.left().epsilon, .1, 1e-12);
  EXPECT_EQ(entry.left().delta, 0);
  EXPECT_TRUE(entry.Affords({.1, 0}));
  EXPECT_FALSE(entry.Affords({.1, 1e-300}));
  EXPECT_EQ(entry.SpentBy(Accounting::kGaussian).epsilon, std::numeric_limits<double>::infinity());
}

TEST_F(LedgerTest, EntryNamesTheNeighboursOfAllCharges) {
  const auto ledger = OpenGranted({10, 0});
  EXPECT_EQ(ledger->Show(kUuid)->neighbours, "");
  Guarantee near = Costs(.1, 0);
  near.neighbours = "any two inputs within .5";
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(const LedgerEntry charged, ledger->Charge(kUuid, near));
    for (const LedgerEntry& entry : {charged, *ledger->Show(kUuid)}) {
      EXPECT_EQ(entry.neighbours, near.neighbours);
      EXPECT_TRUE(entry.same_neighbours);
    }
  }
  ASSERT_OK_AND_ASSIGN(const LedgerEntry charged, ledger->Charge(kUuid, Costs(.1, 0)));
  for (const LedgerEntry& entry : {charged, *ledger->Show(kUuid)}) {
    EXPECT_EQ(entry.neighbours, "");
    EXPECT_FALSE(entry.same_neighbours);
  }
}

TEST_F(LedgerTest, GaussianAccountingRefusesGuaranteesWithoutMu) {
  const auto ledger = OpenGranted({10, 1e-5}, Accounting::kGaussian);
  EXPECT_THAT(ledger->Charge(kUuid, Costs(1, 0)), IsOk());
  EXPECT_THAT(ledger->Charge(kUuid, Costs(1, 1e-6)),
              FailsWith(kFailedPrecondition, "accounting must be basic"));
  Guarantee printed = Gaussian(1, 1e-6, .1);
  printed.proven = false;
  EXPECT_THAT(ledger->Charge(kUuid, printed), FailsWith(kFailedPrecondition, "proven"));
  EXPECT_EQ(ledger->Show(kUuid)->releases, 1);
}

TEST_F(LedgerTest, BatchCostsWhatItsReleasesCostOneByOne) {
  for (const Accounting accounting : {Accounting::kBasic, Accounting::kGaussian}) {
    const TemporaryFolder folder;
    ASSERT_OK_AND_ASSIGN(const auto batched, Ledger::Open(folder / "batched"));
    ASSERT_OK_AND_ASSIGN(const auto single, Ledger::Open(folder / "single"));
    const LedgerWitness witness(folder / "batched.witness");
    batched->StartBatch(21);
    for (const auto& ledger : {batched.get(), single.get()}) {
      ASSERT_THAT(ledger->Grant(kUuid, {20, .1}, accounting), IsOk());
      for (int i = 0; i < 21; ++i) {
        ASSERT_THAT(ledger->Charge(kUuid, Gaussian(.341, 1e-5, .1)), IsOk());
        // One change for each of 1, 2, 4, 8 and 6 releases, made before the first of them.
        const int changes = i < 1 ? 1 : i < 3 ? 2 : i < 7 ? 3 : i < 15 ? 4 : 5;
        EXPECT_EQ(witness.Read()->generation, 1 + (ledger == batched.get() ? changes : 5));
        const int charged = std::min((1 << changes) - 1, 21);
        EXPECT_EQ(ledger->Show(kUuid)->charged_ahead,
                  ledger == batched.get() ? charged - i - 1 : 0);
      }
    }
    EXPECT_EQ(batched->EndBatch(), 0);
    ASSERT_OK_AND_ASSIGN(const LedgerEntry entry, batched->Show(kUuid));
    ASSERT_OK_AND_ASSIGN(const LedgerEntry expected, single->Show(kUuid));
    EXPECT_EQ(entry.releases, 21);
    EXPECT_NEAR(entry.spent().epsilon, expected.spent().epsilon, 1e-9);
    EXPECT_NEAR(entry.sums.delta, expected.sums.delta, 1e-15);
    EXPECT_NEAR(*entry.gaussian_mu, *expected.gaussian_mu, 1e-12);
    EXPECT_EQ(batched->History(kUuid)->size(), 22);
  }
}

TEST_F(LedgerTest, BatchThatEndsEarlyKeepsItsCharges) {
  const auto ledger = OpenGranted({1, 1e-5});
  ledger->StartBatch(100);
  for (int i = 0; i < 4; ++i) ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 0)), IsOk());
  EXPECT_EQ(ledger->EndBatch(), 3);
  EXPECT_EQ(ledger->EndBatch(), 0);
  EXPECT_EQ(ledger->Show(kUuid)->releases, 7);
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 0)), IsOk());
  EXPECT_EQ(ledger->Show(kUuid)->releases, 8);
}

// 1 + 2 + 4 of ten are charged together; then the budget covers 3 more.
TEST_F(LedgerTest, BatchBeyondTheBudgetSpendsItOneByOne) {
  const auto ledger = OpenGranted({1, 1e-5});
  ledger->StartBatch(100);
  for (int i = 0; i < 10; ++i) ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 0)), IsOk()) << i;
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 0)),
              FailsWith(kExhausted, "spent epsilon 1 delta 0, left "));
  EXPECT_EQ(ledger->EndBatch(), 0);
  ASSERT_THAT(ledger->Grant("another", {1, 6e-6}), IsOk());
  ledger->StartBatch(100);
  for (int i = 0; i < 6; ++i) ASSERT_THAT(ledger->Charge("another", Costs(.1, 1e-6)), IsOk()) << i;
  EXPECT_THAT(ledger->Charge("another", Costs(.1, 1e-6)), FailsWith(kExhausted, "in delta"));
}

TEST_F(LedgerTest, NothingIsFreeOrNotANumber) {
  const auto ledger = OpenGranted({1, 1e-5});
  EXPECT_THAT(ledger->Charge(kUuid, Costs(0, 0)), FailsWith(kInvalid, "epsilon"));
  Guarantee free = Costs(.1, 1e-6);
  free.gaussian_mu = 0;
  EXPECT_THAT(ledger->Charge(kUuid, free), FailsWith(kInvalid, "gaussian_mu"));
  EXPECT_FALSE(ledger->Show(kUuid)->Affords({std::nan(""), 0}));
  free.proven = false, free.gaussian_mu = std::nullopt;
  EXPECT_FALSE(ledger->Charge(kUuid, free)->all_proven);
}

// Neither another guarantee or collection nor another process takes what a batch has charged.
TEST_F(LedgerTest, BatchPaysForEqualReleasesOfItsProcessOnly) {
  const auto ledger = OpenGranted({10, 1e-5});
  ASSERT_THAT(ledger->Grant("another", {10, 1e-5}), IsOk());
  ledger->StartBatch(100);
  for (int i = 0; i < 4; ++i) ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 0)), IsOk());
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.2, 0)), IsOk());
  ASSERT_THAT(ledger->Charge("another", Costs(.1, 0)), IsOk());
  EXPECT_EQ(ledger->Show(kUuid)->releases, 8);
  EXPECT_EQ(ledger->Show("another")->releases, 1);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(ledger->Charge(kUuid, Costs(.1, 0)).ok() ? 0 : 1);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(ledger->Show(kUuid)->releases, 9);
  EXPECT_EQ(ledger->EndBatch(), 3);
}

TEST_F(LedgerTest, HistoryListsGrantsAndChargesOldestFirst) {
  SpendTenths(path_, 2);
  const auto ledger = Open();
  ASSERT_OK_AND_ASSIGN(const std::vector<LedgerChange> changes, ledger->History(kUuid));
  ASSERT_EQ(changes.size(), 3);
  EXPECT_EQ(changes[0].kind, LedgerChange::Kind::kGrant);
  EXPECT_EQ(changes[0].epsilon, 1);
  EXPECT_EQ(changes[2].kind, LedgerChange::Kind::kCharge);
  EXPECT_EQ(changes[2].epsilon, .1);
  EXPECT_TRUE(changes[2].proven);
  EXPECT_TRUE(ledger->History("another")->empty());
  ASSERT_THAT(ledger->GrantOperator("acme", kServer, {2, 1e-5}), IsOk());
  ASSERT_THAT(ledger->GrantOperator("other", "other server", {2, 1e-5}), IsOk());
  EXPECT_EQ(ledger->History(kUuid)->size(), 3) << "of no operator";
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6), kServer), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::vector<LedgerChange> all, ledger->History(kUuid));
  ASSERT_EQ(all.size(), 5);
  EXPECT_EQ(all[3].kind, LedgerChange::Kind::kOperatorGrant);
  EXPECT_EQ(all[3].collection, "acme");
  EXPECT_EQ(all[3].server, kServer);
  EXPECT_EQ(all[4].server, kServer);
}

}  // namespace
}  // namespace privatemail::client
