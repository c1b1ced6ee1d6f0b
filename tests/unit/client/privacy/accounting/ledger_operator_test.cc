// Budgets over all collections of an operator.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/sqlite/sqlite.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/client/privacy/accounting/ledger_fixture.h"

namespace privatemail::client {
namespace {

using LedgerOperator = LedgerTest;

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
  SpendInProcesses(path_, 2, [&](Ledger& ledger, int child) {
    for (int i = 0; i < 30; ++i) {
      (void)ledger.Charge(collections[child], Costs(.1, 0), servers[child]);
    }
  });
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

}  // namespace
}  // namespace privatemail::client
