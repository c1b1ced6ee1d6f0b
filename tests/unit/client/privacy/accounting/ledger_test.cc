#include "privatemail/ledger.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/ledger_state.h"
#include "client/privacy/accounting/ledger_witness.h"
#include "common/base/digests.h"
#include "common/sqlite/sqlite.h"
#include "tests/testing/release_inputs.h"
#include "tests/testing/wait_until.h"

namespace privatemail::client {
namespace {

class LedgerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Ledger> Open() const { return Ledger::Open(path_).value(); }
  std::unique_ptr<Ledger> OpenGranted(const Budget& budget,
                                      Accounting accounting = Accounting::kBasic) const {
    std::unique_ptr<Ledger> ledger = Open();
    EXPECT_THAT(ledger->Grant(kUuid, budget, accounting), IsOk());
    return ledger;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "ledger";
};

using LedgerOperator = LedgerTest;
constexpr char kServer[] = "server";

Guarantee Costs(double epsilon, double delta) {
  return {
      .epsilon = epsilon, .delta = delta, .neighbours = "test", .proven = true, .source = "test"};
}

// Grants 1 and charges .1 `charges` times.
void SpendTenths(const std::string& path, int charges) {
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
  ASSERT_THAT(ledger->Grant(kUuid, {1, 1e-5}), IsOk());
  for (int i = 0; i < charges; ++i) ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6)), IsOk());
}

// In place: the file keeps its inode.
void Overwrite(const std::string& from, const std::string& to) {
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
}

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
  {
    const auto ledger = Open();
    ASSERT_THAT(ledger->Grant(kUuid, {2, 1e-4}), IsOk());
  }
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const auto ledger = Ledger::Open(path_);
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
  const auto ledger = Open();
  EXPECT_EQ(ledger->Show(kUuid)->releases, 20);
}

Guarantee Gaussian(double epsilon, double delta, double mu) {
  Guarantee guarantee = Costs(epsilon, delta);
  guarantee.gaussian_mu = mu;
  return guarantee;
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

// Two processes at a time in batches, each for a collection of its own of one operator: `sum`
// bounds both together. A kill between a charge and its count weakens the test only.
void ExpectKilledBatchesWithin(const std::string& path, int granted_each, int sum) {
  ASSERT_OK_AND_ASSIGN(const auto ledger, Ledger::Open(path));
  for (const char* collection : {kUuid, "another"}) {
    ASSERT_THAT(ledger->Grant(collection, {static_cast<double>(granted_each), 1e-5}), IsOk());
  }
  ASSERT_THAT(ledger->GrantOperator("acme", kServer, {static_cast<double>(sum), 1e-5}), IsOk());
  auto* const released =
      static_cast<std::atomic<int>*>(mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(released, MAP_FAILED);
  const auto spend = [&](const char* collection) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    const auto own = Ledger::Open(path);
    if (!own.ok()) _exit(1);
    (*own)->StartBatch(40);
    for (int i = 0; i < 40 && (*own)->Charge(collection, Costs(1, 0), kServer).ok(); ++i) {
      ++*released;
    }
    _exit(0);
  };
  std::mt19937 bits(1);
  for (int kills = 0; kills < 50; kills += 2) {
    // At most 39 of the 80 that both would release, so that it is reached.
    const int enough = *released + static_cast<int>(bits() % 40);
    const pid_t children[] = {spend(kUuid), spend("another")};
    ASSERT_TRUE(WaitUntil([&] { return *released >= enough; }));
    for (const pid_t child : children) {
      ASSERT_GT(child, 0);
      ::kill(child, SIGKILL);
      ASSERT_EQ(waitpid(child, nullptr, 0), child);
    }
    ASSERT_LE(*released, ledger->ShowOperator("acme")->sum.releases);
  }
  testing::Test::RecordProperty("released", *released);
  for (const char* collection : {kUuid, "another"}) {
    ledger->StartBatch(granted_each);
    while (ledger->Charge(collection, Costs(1, 0), kServer).ok()) ++*released;
    EXPECT_LE(ledger->Show(collection)->releases, granted_each);
  }
  EXPECT_LE(*released, std::min(2 * granted_each, sum));
  EXPECT_EQ(ledger->ShowOperator("acme")->sum.releases, std::min(2 * granted_each, sum));
}

TEST_F(LedgerTest, KilledBatchesNeverReleaseMoreThanIsGranted) {
  ExpectKilledBatchesWithin(path_, /*granted_each=*/1500, /*sum=*/5000);
}

TEST_F(LedgerOperator, KilledBatchesNeverReleaseMoreThanTheSum) {
  ExpectKilledBatchesWithin(path_, /*granted_each=*/2000, /*sum=*/3000);
}

TEST_F(LedgerOperator, SumsAllCollectionsOfItsServers) {
  const auto ledger = OpenGranted({10, 1e-4});
  for (const char* other : {"another", "third"}) {
    ASSERT_THAT(ledger->Grant(other, {10, 1e-4}), IsOk());
  }
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.5, 1e-6), kServer), IsOk());  // before the grant
  EXPECT_FALSE(*ledger->HasOperators());
  ASSERT_THAT(ledger->GrantOperator("acme", kServer, {1, 1e-5}), IsOk());
  ASSERT_THAT(ledger->GrantOperator("acme", "second server", {1, 1e-5}), IsOk());
  ASSERT_THAT(ledger->Charge("another", Costs(.25, 1e-6), "second server"), IsOk());
  for (const auto& [collection, server] : {std::pair(kUuid, kServer),
                                           {"third", kServer},
                                           {"third", "second server"},
                                           {kUuid, "its new address"},
                                           {"another", ""}}) {
    EXPECT_THAT(ledger->Charge(collection, Costs(.5, 1e-6), server),
                FailsWith(kExhausted,
                          "budget must be left for epsilon 0.5 delta 1e-06 over all collections "
                          "of operator acme, but is exhausted in epsilon: spent epsilon 0.75"))
        << collection << " at " << server;
  }
  EXPECT_THAT(ledger->Charge("third", Costs(.1, 9e-6), kServer), FailsWith(kExhausted, "in delta"));
  EXPECT_EQ(ledger->Show("third")->releases, 0);
  EXPECT_THAT(ledger->Charge("third", Costs(5, 1e-6), "of a stranger"), IsOk());
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.25, 1e-6), "its new address"), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::vector<OperatorEntry> operators,
                       Open()->ShowOperators(kUuid, ""));
  ASSERT_EQ(operators.size(), 1);
  EXPECT_EQ(operators[0].name, "acme");
  EXPECT_EQ(operators[0].sum.releases, 3);
  EXPECT_EQ(operators[0].sum.left().epsilon, 0);
  EXPECT_EQ(ledger->ShowOperators("new", kServer)->size(), 1);
  EXPECT_TRUE(ledger->ShowOperators("new", "of a stranger")->empty());
  EXPECT_FALSE(ledger->ShowOperator("nobody")->sum.granted.has_value());
  EXPECT_EQ(ledger->ShowOperator("nobody")->sum.releases, 0);
  EXPECT_EQ(ledger->History("acme")->size(), 0) << "a collection of the operator's name";
}

// A collection that two operators hold counts to both.
TEST_F(LedgerOperator, CollectionAtServersOfTwoCountsToBoth) {
  const auto ledger = OpenGranted({10, 0});
  ASSERT_THAT(ledger->GrantOperator("acme", kServer, {1, 0}), IsOk());
  ASSERT_THAT(ledger->GrantOperator("other", "other server", {5, 0}), IsOk());
  EXPECT_THAT(ledger->GrantOperator("other", kServer, {5, 0}),
              FailsWith(kFailedPrecondition, "operator must be acme, to whom"));
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.75, 0), kServer), IsOk());
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.5, 0), "other server"), FailsWith(kExhausted, "acme"));
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.25, 0), "other server"), IsOk());
  EXPECT_EQ(ledger->ShowOperator("other")->sum.spent().epsilon, 1);
}

TEST_F(LedgerOperator, BadValuesAreNamed) {
  const auto ledger = Open();
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double epsilon : {nan, infinity, 0., -1.}) {
    EXPECT_THAT(ledger->GrantOperator("acme", kServer, {epsilon, 0}),
                FailsWith(kInvalid, "epsilon"));
  }
  for (const double delta : {nan, infinity, 1., -.1}) {
    EXPECT_THAT(ledger->GrantOperator("acme", kServer, {1, delta}), FailsWith(kInvalid, "delta"));
  }
  EXPECT_THAT(ledger->GrantOperator("acme", kServer, {1, 0}, Accounting::kGaussian),
              FailsWith(kInvalid, "delta must be strictly"));
  for (const std::string& name : {std::string(), std::string("a\nb"), std::string(101, 'a')}) {
    EXPECT_THAT(ledger->GrantOperator(name, kServer, {1, 0}), FailsWith(kInvalid, "operator must"));
  }
  EXPECT_THAT(ledger->GrantOperator("acme", "", {1, 0}), FailsWith(kInvalid, "server"));
  EXPECT_FALSE(*ledger->HasOperators());
}

TEST_F(LedgerOperator, SumBeyondTheLargestNumberIsRefused) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  const auto ledger = OpenGranted({kLargest, 0});
  ASSERT_THAT(ledger->Grant("another", {kLargest, 0}), IsOk());
  ASSERT_THAT(ledger->GrantOperator("acme", kServer, {kLargest, 0}), IsOk());
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.75 * kLargest, 0), kServer), IsOk());
  EXPECT_THAT(ledger->Charge("another", Costs(.75 * kLargest, 0), kServer),
              FailsWith(kExhausted, "acme"));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.75 * kLargest, 0), kServer),
              FailsWith(kExhausted, "in epsilon"));
}

// The figures of GaussianAccountingAddsSquaredMu, in two collections by turns.
TEST_F(LedgerOperator, GaussianAccountingAddsSquaredMuOverCollections) {
  const auto ledger = OpenGranted({20, 1e-3});
  ASSERT_THAT(ledger->Grant("another", {20, 1e-3}, Accounting::kGaussian), IsOk());
  ASSERT_THAT(ledger->GrantOperator("acme", kServer, {2.6, 1e-5}, Accounting::kGaussian), IsOk());
  const Guarantee one = Gaussian(.341, 1e-5, .1);
  for (int i = 0; i < 40; ++i) {
    ASSERT_THAT(ledger->Charge(i % 2 == 0 ? kUuid : "another", one, kServer), IsOk()) << i;
  }
  EXPECT_NEAR(ledger->ShowOperator("acme")->sum.spent().epsilon, 2.5943833805, 1e-4);
  EXPECT_THAT(ledger->Charge(kUuid, one, kServer), FailsWith(kExhausted, "together"));
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6), kServer),
              FailsWith(kFailedPrecondition, "accounting must be basic"));
}

TEST_F(LedgerOperator, PureReleasesBarChangesOfAccounting) {
  const auto ledger = OpenGranted({10, 1e-5});
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 0), kServer), IsOk());
  EXPECT_THAT(ledger->GrantOperator("acme", kServer, {1, 1e-5}, Accounting::kGaussian),
              FailsWith(kFailedPrecondition, "accounting must be basic for server"))
      << "there was none before";
  ASSERT_THAT(ledger->GrantOperator("acme", "second", {1, 1e-5}, Accounting::kGaussian), IsOk());
  EXPECT_THAT(ledger->GrantOperator("acme", kServer, {1, 1e-5}, Accounting::kGaussian),
              FailsWith(kFailedPrecondition, "accounting must be basic for "));
  EXPECT_THAT(ledger->GrantOperator("other", kServer, {1, 1e-5}), IsOk());
}

// A grant at a server of the operator counts as a charge does, under any address later.
TEST_F(LedgerOperator, GrantTellsTheOperatorOfACollection) {
  const auto ledger = Open();
  ASSERT_THAT(ledger->Grant(kUuid, {10, 0}, Accounting::kBasic, kServer), IsOk());
  ASSERT_THAT(ledger->Grant("another", {10, 0}, Accounting::kBasic, "of a stranger"), IsOk());
  ASSERT_THAT(ledger->GrantOperator("acme", kServer, {1, 0}), IsOk());
  EXPECT_EQ(ledger->ShowOperators(kUuid, "alias of the server")->size(), 1);
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.75, 0), "alias of the server"), IsOk());
  EXPECT_EQ(ledger->ShowOperator("acme")->sum.releases, 1);
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.5, 0), "alias of the server"),
              FailsWith(kExhausted, "acme"));
  EXPECT_THAT(ledger->Charge("another", Costs(5, 0), "of a stranger"), IsOk());
}

// Pure releases from before a collection joined are not covered, those that followed are.
TEST_F(LedgerOperator, GaussianAccountingRefusesFormerPureReleasesOfACollection) {
  const auto ledger = OpenGranted({10, 1e-5});
  ASSERT_THAT(ledger->GrantOperator("acme", kServer, {5, 1e-5}, Accounting::kGaussian), IsOk());
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 0), "of a stranger"), IsOk());
  EXPECT_THAT(
      ledger->Charge(kUuid, Costs(.1, 0), kServer),
      FailsWith(kFailedPrecondition, absl::StrCat("accounting must be basic for collection ", kUuid,
                                                  " over all collections of operator acme")));
  EXPECT_THAT(ledger->Grant(kUuid, {10, 1e-5}, Accounting::kBasic, kServer),
              FailsWith(kFailedPrecondition, "accounting must be basic for collection "));
  EXPECT_EQ(ledger->ShowOperator("acme")->sum.releases, 0);
  ASSERT_THAT(ledger->Grant("another", {10, 1e-5}), IsOk());
  for (const char* server : {kServer, kServer, "of a stranger"}) {
    EXPECT_THAT(ledger->Charge("another", Costs(.1, 0), server), IsOk()) << server;
  }
}

// 1 + 2 + 4 of ten are charged together; then the sum covers 3 more. A batch for another server
// takes no charge of this one.
TEST_F(LedgerOperator, BatchBeyondTheSumSpendsItOneByOne) {
  const auto ledger = OpenGranted({10, 0});
  ASSERT_THAT(ledger->GrantOperator("acme", kServer, {1, 0}), IsOk());
  ledger->StartBatch(100);
  for (int i = 0; i < 6; ++i) ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 0), kServer), IsOk());
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 0), "another server"), IsOk());
  EXPECT_EQ(ledger->Show(kUuid)->releases, 8);
  for (int i = 0; i < 3; ++i) ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 0), kServer), IsOk());
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 0), kServer), FailsWith(kExhausted, "acme"));
}

// Two processes, each for its own collection and at its own server.
TEST_F(LedgerOperator, ConcurrentProcessesNeverOverspendTheSum) {
  const char* const collections[] = {kUuid, "another"};
  const char* const servers[] = {kServer, "second"};
  {
    const auto ledger = Open();
    for (const char* one : collections) ASSERT_THAT(ledger->Grant(one, {10, 0}), IsOk());
    for (const char* server : servers) {
      ASSERT_THAT(ledger->GrantOperator("acme", server, {2, 0}), IsOk());
    }
  }
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const auto ledger = Ledger::Open(path_);
      if (!ledger.ok()) _exit(1);
      for (int i = 0; i < 30; ++i) {
        (void)(*ledger)->Charge(collections[child], Costs(.1, 0), servers[child]);
      }
      _exit(0);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int state = 0;
    ASSERT_EQ(waitpid(pid, &state, 0), pid);
    EXPECT_EQ(state, 0);
  }
  EXPECT_EQ(Open()->ShowOperator("acme")->sum.releases, 20);
}

// Tables as the version before made them: a charge had no server.
TEST_F(LedgerOperator, TablesOfTheVersionBeforeAreExtended) {
  SpendTenths(path_, 2);
  {
    ASSERT_OK_AND_ASSIGN(const auto database, sqlite::Database::Open(path_));
    ASSERT_THAT(database->Execute("DROP INDEX changes_of_server; ALTER TABLE changes DROP COLUMN "
                                  "server; PRAGMA user_version = 1"),
                IsOk());
  }
  const auto ledger = Open();
  ASSERT_THAT(ledger->GrantOperator("acme", kServer, {.25, 1e-5}), IsOk());
  EXPECT_EQ(ledger->ShowOperator("acme")->sum.releases, 0);
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6), kServer), FailsWith(kExhausted, "acme"));
  ASSERT_THAT(ledger->GrantOperator("acme", kServer, {.5, 1e-5}), IsOk());
  ASSERT_THAT(ledger->Charge(kUuid, Costs(.1, 1e-6), kServer), IsOk());
  EXPECT_EQ(ledger->ShowOperator("acme")->sum.releases, 3);
  EXPECT_THAT(ledger->Charge(kUuid, Costs(.3, 1e-6), kServer), FailsWith(kExhausted, "acme"));
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

// Ledgers that were copied, restored, lost or damaged, or whose witness was: refused.
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
