// Power cuts before every system call of a ledger's life, with unsynced writes lost, kept or half
// of both. Every reported charge must be on disk, or the ledger must refuse; the witness must count
// it in any case.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/privacy/accounting/ledger_witness.h"
#include "privatemail/ledger.h"
#include "tests/testing/simulated_disk.h"
#include "tests/testing/temporary_folder.h"

namespace privatemail::client {
namespace {

constexpr char kUuid[] = "4ccbd2bb-24d1-4c1c-8a5e-1f53ad5dd2a5";
constexpr int kAffordable = 6;  // charges that the grant covers
constexpr int kCharges = 4;     // in the first life
const Guarantee kCharge = {
    .epsilon = 1, .delta = 1e-6, .neighbours = "test", .proven = true, .source = "test"};

// Reports the grant and each charge after it returned.
void SpendSome(ProcessRun& life, const std::string& path, bool batch = false) {
  const auto ledger = Ledger::Open(path);
  if (!ledger.ok() || !(*ledger)->Grant(kUuid, {kAffordable, 1e-5}).ok()) return;
  life.reported = 1;
  if (batch) (*ledger)->StartBatch(kCharges);
  for (int i = 0; i < kCharges && (*ledger)->Charge(kUuid, kCharge).ok(); ++i) ++life.reported;
}

// Reports the stored changes and spends the rest; status_code is that of the last call.
void SpendTheRest(ProcessRun& life, const std::string& path) {
  const auto ledger = Ledger::Open(path);
  life.status_code = static_cast<int>(ledger.status().code());
  if (!ledger.ok()) return;
  const auto entry = (*ledger)->Show(kUuid);
  life.status_code = static_cast<int>(entry.status().code());
  if (!entry.ok()) return;
  life.shown = (entry->granted.has_value() ? 1 : 0) + entry->releases;
  while (true) {
    const auto charged = (*ledger)->Charge(kUuid, kCharge);
    life.status_code = static_cast<int>(charged.status().code());
    if (!charged.ok()) return;
    ++life.later;
  }
}

bool Refused(const ProcessRun& life) {
  return life.status_code == static_cast<int>(absl::StatusCode::kDataLoss);
}

// Number of changes that the witness counts, in any file.
int64_t WitnessedBy(const std::string& ledger) {
  const auto record = LedgerWitness(ledger + ".witness").Read();
  return record.ok() ? record->generation : 0;
}

// The violated requirement, or empty: the second life follows a first one that was cut and left a
// witness that counts `witnessed` changes.
std::string FaultOf(const ProcessRun& first, int64_t witnessed, const ProcessRun& second,
                    int64_t together) {
  // Else an older copy of the ledger would be accepted and refund a charge.
  if (witnessed < first.reported - (together - 1)) {
    return absl::StrCat(first.reported, " reported, ", witnessed, " witnessed");
  }
  if (Refused(second)) return "";
  if (second.shown < first.reported) {
    return absl::StrCat(first.reported, " reported, ", second.shown, " there");
  }
  if (second.shown > first.reported + together) return "more there than was ever begun";
  const int64_t charges = std::max<int64_t>(first.reported - 1, 0);
  if (charges + second.later > kAffordable) return "more spent than granted";
  // It must stop with an exhausted budget, or for lack of the grant that was cut.
  const auto last = static_cast<absl::StatusCode>(second.status_code);
  if (second.shown == 0 ? last != absl::StatusCode::kFailedPrecondition
                        : last != absl::StatusCode::kResourceExhausted) {
    return absl::StrCat("stops with ", absl::StatusCodeToString(last));
  }
  return "";
}

struct Tally {
  int64_t cuts = 0;
  int64_t refusals = 0;
  int64_t faults = 0;
  std::string first_fault = {};

  void Add(const PowerCut& cut, const ProcessRun& first, int64_t witnessed,
           const ProcessRun& second, int64_t together) {
    ++cuts;
    refusals += Refused(second);
    const std::string fault = FaultOf(first, witnessed, second, together);
    if (!fault.empty() && faults++ == 0) {
      first_fault = absl::StrCat("seed ", cut.seed, " before call ", cut.before_call, ": ", fault);
    }
  }
};

// Cuts before every call in the whole life of a ledger, and after its last. In a batch, two charges
// are made together.
Tally CutEverywhere(PowerCut cut, bool batch = false) {
  Tally tally;
  for (cut.before_call = 1;; ++cut.before_call, ++cut.seed) {
    const TemporaryFolder folder;
    const std::string path = folder / "ledger";
    Births births;
    const ProcessRun first = RunUntilPowerCut(
        folder.path(), cut, births, [&](ProcessRun& life) { SpendSome(life, path, batch); });
    const int64_t witnessed = WitnessedBy(path);
    const ProcessRun second = RunUntilPowerCut(folder.path(), {.unsynced = Unsynced::kKept}, births,
                                               [&](ProcessRun& life) { SpendTheRest(life, path); });
    tally.Add(cut, first, witnessed, second, batch ? 2 : 1);
    if (first.calls < cut.before_call) {
      EXPECT_EQ(first.reported, 1 + kCharges) << "the uncut life is whole";
      return tally;
    }
  }
}

void Record(const std::string& what, const Tally& tally) {
  testing::Test::RecordProperty(what + "_cuts", std::to_string(tally.cuts));
  testing::Test::RecordProperty(what + "_refusals", std::to_string(tally.refusals));
  std::printf("%s: %lld cuts, %lld refusals, %lld faults\n", what.c_str(),
              static_cast<long long>(tally.cuts), static_cast<long long>(tally.refusals),
              static_cast<long long>(tally.faults));
}

TEST(LedgerPowerLoss, ProcessEndAtAnyCallLosesNoChargeAndIsRepaired) {
  const Tally tally = CutEverywhere({.unsynced = Unsynced::kKept});
  Record("kept", tally);
  EXPECT_EQ(tally.faults, 0) << tally.first_fault;
  EXPECT_EQ(tally.refusals, 0);
  EXPECT_GT(tally.cuts, 100);  // or the calls are not seen
}

TEST(LedgerPowerLoss, LosingAllUnsyncedWritesRefundsNothingAndIsRepaired) {
  const Tally tally = CutEverywhere({.unsynced = Unsynced::kLost});
  Record("lost", tally);
  EXPECT_EQ(tally.faults, 0) << tally.first_fault;
  EXPECT_EQ(tally.refusals, 0);
}

void ExpectLosingHalfRefundsNothing(uint64_t seed) {
  const Tally tally = CutEverywhere({.unsynced = Unsynced::kHalf, .seed = seed});
  EXPECT_EQ(tally.faults, 0) << tally.first_fault;
  EXPECT_EQ(tally.refusals, 0);
  Record("half", tally);
}

TEST(LedgerPowerLoss, LosingHalfOfUnsyncedWritesRefundsNothing) {
  ExpectLosingHalfRefundsNothing(1);
}

TEST(LedgerPowerLoss, LosingOtherHalvesRefundsNothing) {
  for (const uint64_t seed : {1001, 2001}) ExpectLosingHalfRefundsNothing(seed);
}

TEST(LedgerPowerLoss, CutBatchRefundsNothing) {
  for (const Unsynced unsynced : {Unsynced::kLost, Unsynced::kKept}) {
    const Tally tally = CutEverywhere({.unsynced = unsynced}, /*batch=*/true);
    Record("batch", tally);
    EXPECT_EQ(tally.faults, 0) << tally.first_fault;
    EXPECT_EQ(tally.refusals, 0);
  }
}

// Somebody keeps a hard link to a witness; the power goes once the next charge is reported.
TEST(LedgerPowerLoss, FormerWitnessStaysErased) {
  const TemporaryFolder folder;
  const std::string path = folder / "ledger";
  Births births;
  const ProcessRun life = RunUntilPowerCut(folder.path(), {}, births, [&](ProcessRun& own) {
    const auto ledger = Ledger::Open(path);
    if (!ledger.ok() || !(*ledger)->Grant(kUuid, {kAffordable, 1e-5}).ok()) return;
    if (::link((path + ".witness").c_str(), (folder / "kept").c_str()) != 0) return;
    if ((*ledger)->Charge(kUuid, kCharge).ok()) own.reported = 1;
  });
  EXPECT_EQ(life.reported, 1);
  EXPECT_EQ(std::filesystem::file_size(folder / "kept"), 0);
}

void PutBack(const std::filesystem::path& copy, const std::string& folder) {
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".witness") std::filesystem::remove(file);
  }
  for (const auto& file : std::filesystem::directory_iterator(copy)) {
    if (file.path().extension() == ".witness") continue;
    std::filesystem::copy(file, folder);
  }
}

// An older ledger is restored over one whose process was cut, another charge is made and released,
// and then the files that the cut left are restored in turn.
TEST(LedgerPowerLoss, CopyOfIncompleteChangeDoesNotRefundItsReplacement) {
  const TemporaryFolder before;
  Births births_of_before;
  RunUntilPowerCut(before.path(), {}, births_of_before,
                   [&](ProcessRun& life) { SpendSome(life, before / "ledger"); });
  int64_t replacements_released = 0;
  for (PowerCut cut = {.before_call = 1, .unsynced = Unsynced::kKept};; ++cut.before_call) {
    const TemporaryFolder folder;
    const TemporaryFolder left_by_the_cut;
    const std::string path = folder / "ledger";
    std::filesystem::copy(before.path(), folder.path());
    Births births = births_of_before;
    const auto charge = [&](ProcessRun& life) {
      const auto ledger = Ledger::Open(path);
      if (ledger.ok() && (*ledger)->Charge(kUuid, kCharge).ok()) life.reported = 1;
    };
    const ProcessRun first = RunUntilPowerCut(folder.path(), cut, births, charge);
    std::filesystem::copy(folder.path(), left_by_the_cut.path());
    PutBack(before.path(), folder.path());
    const ProcessRun second = RunUntilPowerCut(folder.path(), {}, births, charge);
    PutBack(left_by_the_cut.path(), folder.path());
    const ProcessRun third = RunUntilPowerCut(folder.path(), {}, births,
                                              [&](ProcessRun& life) { SpendTheRest(life, path); });
    replacements_released += second.reported;
    EXPECT_FALSE(first.reported == 1 && second.reported == 1) << cut.before_call;
    EXPECT_TRUE(second.reported == 0 || Refused(third)) << cut.before_call;
    if (first.calls < cut.before_call) break;
  }
  EXPECT_GT(replacements_released, 10);
}

// Consecutive lives, each cut somewhere, recoveries included.
TEST(LedgerPowerLoss, RepeatedCutsNeverOverspend) {
  std::mt19937_64 bits(5);
  int64_t exhausted = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const TemporaryFolder folder;
    const std::string path = folder / "ledger";
    Births births;
    RunUntilPowerCut(folder.path(), {}, births, [&](ProcessRun&) {
      const auto ledger = Ledger::Open(path);
      if (!ledger.ok() || !(*ledger)->Grant(kUuid, {kAffordable, 1e-5}).ok()) _exit(1);
    });
    int64_t reported = 0;
    for (int lives = 0; lives < 40; ++lives) {
      const PowerCut cut = {.before_call = 1 + static_cast<int64_t>(bits() % 60),
                            .unsynced = static_cast<Unsynced>(bits() % 3),
                            .seed = bits()};
      const ProcessRun life = RunUntilPowerCut(folder.path(), cut, births,
                                               [&](ProcessRun& own) { SpendTheRest(own, path); });
      reported += life.later;
      ASSERT_LE(reported, kAffordable);
      const bool ended = life.status_code == static_cast<int>(absl::StatusCode::kResourceExhausted);
      exhausted += ended;
      if (ended || Refused(life)) break;
    }
  }
  EXPECT_GT(exhausted, 30);
}

// Checks the test itself: a disk that ignores syncs loses charges.
TEST(LedgerPowerLoss, DiskIgnoringSyncsIsDetectedByThisTest) {
  EXPECT_GT(CutEverywhere({.unsynced = Unsynced::kLost, .disk_ignores_syncs = true}).faults, 0);
}

}  // namespace
}  // namespace privatemail::client
