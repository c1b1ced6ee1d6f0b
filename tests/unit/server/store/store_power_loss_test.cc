// Power cuts at every system call of a SQLite store, losing none, all or half of the unsynced
// writes. The store must open, hold every acknowledged change, and the running one completely or
// not at all.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/testing/simulated_disk.h"
#include "tests/unit/server/engine/orphan_rows.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

// The expected content of a store.
struct Model {
  bool fruit = false;
  bool fish = false;
  std::map<std::string, Item> items = {};  // of fruit
  std::optional<Embedding> embedding = {};
  std::string cells = {};
};

std::string TextOf(const Item& item) {
  return absl::StrCat(item.id, " ", item.label, " ", item.payload, " ",
                      absl::BytesToHexString({reinterpret_cast<const char*>(item.features.data()),
                                              item.features.size() * sizeof(float)}),
                      "\n");
}

std::string TextOf(const std::optional<Embedding>& embedding) {
  if (!embedding) return "no embedding\n";
  std::string text = absl::StrCat("version ", embedding->version, "\n");
  for (size_t i = 0; i < embedding->ids.size(); ++i) {
    const auto row = embedding->coordinates.row(static_cast<Eigen::Index>(i));
    absl::StrAppend(&text, embedding->ids[i], " ", row(0), " ", row(1), "\n");
  }
  return text;
}

EmbeddingVersion VersionOf(const Embedding& embedding) {
  return {static_cast<int64_t>(embedding.version), static_cast<int64_t>(embedding.items_version)};
}

std::string TextOf(const Model& model) {
  std::string text;
  if (model.fish) absl::StrAppend(&text, "fish 0\n");
  if (!model.fruit) return text;
  absl::StrAppend(&text, "fruit ", model.items.size(), "\n");
  for (const auto& [id, item] : model.items) text += TextOf(item);
  return absl::StrCat(text, TextOf(model.embedding), model.cells);
}

// An error if something cannot be read.
absl::StatusOr<std::string> TextOf(SqliteStore* store, const PublicParameters& fruit) {
  std::string text;
  PM_ASSIGN_OR_RETURN(const std::vector<StoredCollection> all, store->LoadCollections());
  bool there = false;
  for (const StoredCollection& collection : all) {
    absl::StrAppend(&text, collection.name, " ", collection.items, "\n");
    there = there || collection.name == "fruit";
  }
  if (!there) return text;
  PM_ASSIGN_OR_RETURN(const Gallery gallery, store->LoadGallery(fruit));
  PM_ASSIGN_OR_RETURN(const std::vector<Item> items, store->GetItems(fruit, gallery.ids));
  for (const Item& item : items) text += TextOf(item);
  PM_ASSIGN_OR_RETURN(const std::optional<Embedding> embedding, store->LoadEmbedding(fruit));
  if (!embedding) return text + TextOf(embedding);
  PM_ASSIGN_OR_RETURN(
      const std::optional<StoredCells> cells,
      store->LoadCells(fruit, VersionOf(*embedding), [](int64_t) { return absl::OkStatus(); }));
  return absl::StrCat(text, TextOf(embedding), cells ? cells->image : "");
}

// A sequence of changes, and the expected content after each.
class Story {
 public:
  Story() {
    Add([this](SqliteStore* store) { return store->Create(fruit_); },
        [](Model* model) { model->fruit = true; });
    Upsert(MakeItems(6, 1));
    Upsert(Large(MakeItems(9, 50)));  // six updates, three insertions, over many pages
    Delete({"item-001", "item-004", "item-007", "not there"});
    SaveEmbedding(5);
    SaveCells(std::string(9000, 'a'));
    SaveCells(std::string(9000, 'b'));
    Upsert(MakeItems(3, 90));
    Add([this](SqliteStore* store) { return store->Create(fish_); },
        [](Model* model) { model->fish = true; });
    SaveEmbedding(7);
    Delete({"item-000", "item-008"});
    Add(
        [this](SqliteStore* store) {
          absl::Status status = store->Delete(fish_.parameters.collection_uuid).status();
          status.Update(RemoveRows(store));
          return status;
        },
        [](Model* model) { model->fish = false; });
    Upsert(MakeItems(12, 130));
    Add([this](SqliteStore* store) { return store->Create(fish_); },
        [](Model* model) { model->fish = true; });
    Add([this](SqliteStore* store) { return store->Delete(fruit().collection_uuid).status(); },
        [](Model* model) { *model = {.fish = true}; });
    const std::vector<Item> snapshot = Large(MakeItems(9, 170));
    Add([this, snapshot](SqliteStore* store) { return Import(store, fruit_, GalleryOf(snapshot)); },
        [snapshot](Model* model) {
          model->fruit = true;
          for (const Item& item : snapshot) model->items[item.id] = item;
        });
  }

  size_t steps() const { return steps_.size(); }
  const PublicParameters& fruit() const { return fruit_.parameters; }

  // Reports each completed step. Reopens the store in the middle, which checkpoints its log.
  void Live(ProcessRun& life, const std::string& folder) const {
    std::unique_ptr<SqliteStore> store;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (i % 6 == 0) store.reset();
      if (store == nullptr) {
        auto opened = SqliteStore::Open(folder);
        life.status_code = static_cast<int>(opened.status().code());
        if (!opened.ok()) return;
        store = *std::move(opened);
      }
      const absl::Status status = steps_[i](store.get());
      life.status_code = static_cast<int>(status.code());
      if (!status.ok()) return;
      ++life.reported;
    }
  }

  // shown: how many steps are there, -1 when it is no number of steps or rows of what was deleted
  // are there. later: writes that work.
  void Look(ProcessRun& life, const std::string& folder) const {
    life.shown = -1;
    auto store = SqliteStore::Open(folder);
    life.status_code = static_cast<int>(store.status().code());
    if (!store.ok()) return;
    const auto text = TextOf(store->get(), fruit());
    life.status_code = static_cast<int>(text.status().code());
    if (!text.ok() || !RemoveRows(store->get()).ok() || CountOrphanRows(folder) != 0) return;
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (texts_[i] == *text) life.shown = static_cast<int64_t>(i);
    }
    StoredCollection more = SmallCollection("more");
    life.later =
        (*store)->Create(more).ok() && (*store)->Upsert(more.parameters, MakeItems(2, 1)).ok();
  }

 private:
  void Add(std::function<absl::Status(SqliteStore*)> change,
           const std::function<void(Model*)>& means) {
    means(&model_);
    texts_.push_back(TextOf(model_));
    steps_.push_back(std::move(change));
  }

  void Upsert(const std::vector<Item>& items) {
    Add([this, items](SqliteStore* store) { return store->Upsert(fruit(), items).status(); },
        [items](Model* model) {
          for (const Item& item : items) model->items[item.id] = item;
        });
  }

  void Delete(const std::vector<std::string>& ids) {
    Add([this, ids](SqliteStore* store) { return store->DeleteItems(fruit(), ids).status(); },
        [ids](Model* model) {
          for (const std::string& id : ids) model->items.erase(id);
        });
  }

  void SaveEmbedding(int items) {
    const Embedding made = SomeEmbedding(items);
    Add([this, made](SqliteStore* store) { return store->SaveEmbedding(fruit(), made).status(); },
        [made](Model* model) {
          const uint64_t version = model->embedding ? model->embedding->version + 1 : 1;
          model->embedding = made;
          model->embedding->version = version;
          model->cells.clear();
        });
  }

  void SaveCells(const std::string& image) {
    const EmbeddingVersion of = VersionOf(*model_.embedding);
    Add([this, of, image](SqliteStore* store) { return store->SaveCells(fruit(), of, image); },
        [image](Model* model) { model->cells = image; });
  }

  static std::vector<Item> Large(std::vector<Item> items) {
    for (Item& item : items) item.payload = '"' + std::string(3000, item.id.back()) + '"';
    return items;
  }

  const StoredCollection fruit_ = SmallCollection("fruit");
  const StoredCollection fish_ = SmallCollection("fish");
  Model model_;
  std::vector<std::function<absl::Status(SqliteStore*)>> steps_;
  std::vector<std::string> texts_ = {""};
};

// The first violation that a second run reports; empty: none.
std::string FaultOf(const ProcessRun& first, const ProcessRun& second) {
  if (second.status_code != 0) {
    return absl::StrCat("status ",
                        absl::StatusCodeToString(static_cast<absl::StatusCode>(second.status_code)),
                        " after ", first.reported, " steps");
  }
  if (second.shown < first.reported || second.shown > first.reported + 1) {
    return absl::StrCat(first.reported, " steps acknowledged, there: ", second.shown);
  }
  return second.later == 1 ? "" : "it takes no more writes";
}

struct Tally {
  int64_t cuts = 0;
  int64_t acknowledged = 0;
  int64_t faults = 0;
  std::string first_fault = {};

  void Add(const PowerCut& cut, const ProcessRun& first, const ProcessRun& second) {
    ++cuts;
    acknowledged += first.reported;
    const std::string fault = FaultOf(first, second);
    if (!fault.empty() && faults++ == 0) {
      first_fault = absl::StrCat("seed ", cut.seed, " before call ", cut.before_call, ": ", fault);
    }
  }
  void Print(const char* what) const {
    std::printf("%s: %lld cuts, %lld acknowledged changes looked for, %lld faults\n", what,
                static_cast<long long>(cuts), static_cast<long long>(acknowledged),
                static_cast<long long>(faults));
  }
};

// Cuts before every call of the first run, including file creation, and after its last; ends at the
// first fault.
Tally CutEverywhere(PowerCut cut) {
  const Story story;
  Tally tally;
  for (cut.before_call = 1;; ++cut.before_call, ++cut.seed) {
    const TemporaryFolder folder;
    Births births;
    const ProcessRun first = RunUntilPowerCut(
        folder.path(), cut, births, [&](ProcessRun& life) { story.Live(life, folder.path()); });
    const ProcessRun second =
        RunUntilPowerCut(folder.path(), {.unsynced = Unsynced::kKept}, births,
                         [&](ProcessRun& life) { story.Look(life, folder.path()); });
    tally.Add(cut, first, second);
    if (tally.faults > 0) return tally;
    if (first.calls < cut.before_call) {
      EXPECT_EQ(first.reported, static_cast<int64_t>(story.steps())) << "the uncut life is whole";
      return tally;
    }
  }
}

class StorePowerLossOf : public ::testing::TestWithParam<std::pair<const char*, Unsynced>> {};

TEST_P(StorePowerLossOf, UnsyncedWritesLosesNothingAcknowledged) {
  const Tally tally = CutEverywhere({.unsynced = GetParam().second});
  tally.Print(GetParam().first);
  EXPECT_EQ(tally.faults, 0) << tally.first_fault;
  EXPECT_GT(tally.cuts, 100);  // or the calls are not seen
}

// Kept: as a kill does.
INSTANTIATE_TEST_SUITE_P(Unsynced, StorePowerLossOf,
                         ::testing::Values(std::pair{"kept", Unsynced::kKept},
                                           std::pair{"lost", Unsynced::kLost},
                                           std::pair{"half", Unsynced::kHalf}),
                         [](const auto& info) { return info.param.first; });

// Cuts during the recovery from an earlier cut.
TEST(StorePowerLoss, RepeatedPowerCutsLoseNothingAcknowledged) {
  const Story story;
  std::mt19937_64 bits(5);
  Tally tally;
  for (int trial = 0; trial < 60; ++trial) {
    const TemporaryFolder folder;
    Births births;
    const PowerCut cut = {.before_call = 1 + static_cast<int64_t>(bits() % 250),
                          .unsynced = static_cast<Unsynced>(bits() % 3),
                          .seed = bits()};
    const ProcessRun first = RunUntilPowerCut(
        folder.path(), cut, births, [&](ProcessRun& life) { story.Live(life, folder.path()); });
    for (int opened = 0; opened < 6; ++opened) {
      const PowerCut again = {.before_call = 1 + static_cast<int64_t>(bits() % 40),
                              .unsynced = static_cast<Unsynced>(bits() % 3),
                              .seed = bits()};
      RunUntilPowerCut(folder.path(), again, births, [&](ProcessRun& life) {
        life.status_code = static_cast<int>(SqliteStore::Open(folder.path()).status().code());
      });
    }
    tally.Add(cut, first,
              RunUntilPowerCut(folder.path(), {.unsynced = Unsynced::kKept}, births,
                               [&](ProcessRun& life) { story.Look(life, folder.path()); }));
  }
  tally.Print("in a row");
  EXPECT_EQ(tally.faults, 0) << tally.first_fault;
}

// Removing the log together with its mark after a cut returns DATA_LOSS if anything acknowledged
// was in it. Every call is cut once, with one of three disks.
TEST(StorePowerLoss, RemovedLogAndMarkLoseNothingUnnoticed) {
  const Story story;
  int64_t noticed = 0;
  int64_t disk = 0;
  for (const Unsynced unsynced : {Unsynced::kKept, Unsynced::kLost, Unsynced::kHalf}) {
    PowerCut cut = {.unsynced = unsynced};
    for (cut.before_call = ++disk;; cut.before_call += 3, ++cut.seed) {
      const TemporaryFolder folder;
      Births births;
      const ProcessRun first = RunUntilPowerCut(
          folder.path(), cut, births, [&](ProcessRun& life) { story.Live(life, folder.path()); });
      for (const char* suffix : {"-wal", "-mark", "-shm"}) {
        std::filesystem::remove(folder / (std::string("privatemail.sqlite") + suffix));
      }
      const ProcessRun second =
          RunUntilPowerCut(folder.path(), {.unsynced = Unsynced::kKept}, births,
                           [&](ProcessRun& life) { story.Look(life, folder.path()); });
      if (second.status_code == static_cast<int>(absl::StatusCode::kDataLoss)) {
        ++noticed;
      } else {
        ASSERT_EQ(FaultOf(first, second), "") << "before call " << cut.before_call;
      }
      if (first.calls < cut.before_call) break;
    }
  }
  EXPECT_GT(noticed, 100);
}

// Control: a disk that ignores syncs loses changes.
TEST(StorePowerLoss, DiskThatIgnoresSyncsIsDetected) {
  EXPECT_GT(CutEverywhere({.unsynced = Unsynced::kLost, .disk_ignores_syncs = true}).faults, 0);
}

}  // namespace
}  // namespace privatemail::testing
