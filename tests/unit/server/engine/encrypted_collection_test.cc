// Encrypted rows of a collection, alone and in a catalog, against what the store has.
#include "server/engine/encrypted_collection.h"

#include <atomic>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/engine/catalog_fixture.h"
#include "tests/unit/server/snapshots.h"

namespace privatemail::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

using Ids = std::vector<std::string>;

constexpr int64_t kAllMemory = std::numeric_limits<int64_t>::max();
const std::atomic<bool> kGoOn = false;

Ids IdsOf(const std::shared_ptr<const EncryptedRows>& rows) {
  Ids ids;
  for (const auto& block : rows->blocks) {
    for (size_t row = 0; row < block->size(); ++row) {
      if (!block->IdOf(row).empty()) ids.emplace_back(block->IdOf(row));
    }
  }
  return ids;
}

class EncryptedCollectionTest : public CatalogTest {
 protected:
  EncryptedCollectionTest() {
    ReopenWith(&hooks_);
    EXPECT_THAT(catalog_->Create(Notes()), IsOk());
  }
  ~EncryptedCollectionTest() override { catalog_.reset(); }  // it calls the hooks

  // Rows of so many values that the store reads 64 of them at once.
  static std::vector<Item> WideRows(int first, int last) {
    std::vector<Item> rows;
    for (int i = first; i <= last; ++i) {
      rows.push_back(Row(absl::StrCat("wide-", i), std::vector<float>(16384, 1)));
    }
    return rows;
  }

  CollectionView Now() const { return *catalog_->Find("notes"); }
  EncryptedCollection& Rows() const { return *Now().encrypted; }
  Ids Found() const {
    const auto rows = Rows().rows();
    return rows == nullptr ? Ids{"no rows"} : IdsOf(rows);
  }
  absl::Status Upsert(const std::vector<Item>& items) {
    return catalog_->Upsert(Now(), items).status();
  }
  absl::Status Delete(const Ids& ids) { return catalog_->DeleteItems(Now(), ids).status(); }
  void SetLimit(int64_t bytes) { catalog_->SetOptions({.resident_memory = bytes}); }
  bool WaitForRows() const {
    return WaitUntil([&] { return Rows().rows() != nullptr; });
  }
  // A catalog that has not loaded the rows.
  void ReopenWithoutLoad() {
    blocked_ = true;
    ReopenWith(&hooks_);
  }

  const TemporaryFolder other_directory_;
  std::atomic<bool> blocked_ = false;
  StoreHooks hooks_{.read_changes = [this](uint64_t after) {
    return blocked_ && after == 0 ? absl::UnavailableError("blocked") : absl::OkStatus();
  }};
};

TEST_F(EncryptedCollectionTest, DeletionThroughViewWithoutDimensionIsFollowed) {
  const CollectionView early = Now();
  ASSERT_THAT(Upsert({Row("a", {1, 2}), Row("b", {2, 1})}), IsOk());
  ASSERT_THAT(catalog_->DeleteItems(early, Ids{"a"}), IsOk());
  EXPECT_THAT(Found(), ElementsAre("b"));
}

TEST_F(EncryptedCollectionTest, ReplacedCollectionOfSameUuidAndDimensionIsLoadedAnew) {
  ASSERT_THAT(Upsert({Row("a", {1, 2}), Row("b", {2, 1})}), IsOk());
  // As if another daemon had restored a collection of as many items in its place.
  hooks_.changes_part = [](ItemChanges* changes, std::vector<Item>* part) {
    changes->collection += 100;
    for (Item& item : *part) item.id = absl::StrCat("later-", item.id);
    return absl::OkStatus();
  };
  EXPECT_THAT(Delete({"none"}), IsOk());
  EXPECT_THAT(Found(), UnorderedElementsAre("later-a", "later-b"));
  EXPECT_EQ(Rows().rows()->items, 2);
}

TEST_F(EncryptedCollectionTest, ReplacedCollectionOfAnotherDimensionIsLoadedAnew) {
  ASSERT_THAT(Upsert({Row("a", {1, 2}), Row("b", {2, 1})}), IsOk());
  PublicParameters wider = Now().published->parameters;
  wider.feature_dim = 3;
  hooks_.changes_part = [](ItemChanges* changes, std::vector<Item>* part) {
    changes->collection += 100;
    for (Item& item : *part) item.features.assign(3, 1);
    return absl::OkStatus();
  };
  const auto store =
      std::make_unique<StoreWithHooks>(*SqliteStore::Open(other_directory_.path()), &hooks_);
  StoredCollection stored{.name = "notes", .parameters = wider, .anchors = {}};
  ASSERT_THAT(store->Create(stored), IsOk());
  ASSERT_THAT(store->Upsert(wider, {{Row("c", {1, 2, 3})}}), IsOk());
  ASSERT_THAT(Rows().CatchUp(*store, wider), IsOk());
  EXPECT_THAT(Found(), ElementsAre("c"));
  EXPECT_EQ(Rows().rows()->dimensions, 3);
}

TEST_F(EncryptedCollectionTest, ItemsOfUnexpectedDimensionAreDataLoss) {
  ASSERT_THAT(Upsert({Row("a", {1, 2})}), IsOk());
  hooks_.changes_part = [](ItemChanges*, std::vector<Item>* part) {
    for (Item& item : *part) item.features.resize(1000, 1);
    return absl::OkStatus();
  };
  EXPECT_THAT(Upsert({Row("b", {2, 1})}),
              FailsWith(kDataLoss, "item b has 1000 features, but the collection has 2"));
  hooks_.changes_part = StoreHooks().changes_part;
  EXPECT_THAT(Upsert({Row("c", {2, 1})}), IsOk());
  EXPECT_THAT(Found(), UnorderedElementsAre("a", "b", "c"));
  const auto before = Rows().rows();
  ASSERT_THAT(Upsert({Row("c", {2, 1})}), IsOk());
  EXPECT_EQ(Rows().rows(), before) << "an unchanged version is not published again";
}

TEST_F(EncryptedCollectionTest, ErrorInTheMiddleOfReadingKeepsFormerVersion) {
  ASSERT_THAT(Upsert(WideRows(0, 0)), IsOk());
  int parts = 0;
  hooks_.changes_part = [&](ItemChanges*, std::vector<Item>*) {
    return ++parts == 2 ? absl::UnavailableError("gone") : absl::OkStatus();
  };
  EXPECT_THAT(Upsert(WideRows(1, 150)), FailsWith(kUnavailable, "gone"));
  EXPECT_EQ(parts, 2);
  EXPECT_THAT(Found(), ElementsAre("wide-0"));
  EXPECT_THAT(Delete({"wide-7", "wide-100"}), IsOk());
  const Ids found = Found();
  EXPECT_EQ(std::set<std::string>(found.begin(), found.end()).size(), 149u);
  EXPECT_THAT(found, Not(Contains(::testing::AnyOf("wide-7", "wide-100"))));
}

TEST_F(EncryptedCollectionTest, PrunedTombstonesMakeItReadEverything) {
  ASSERT_THAT(Upsert({Row("a", {1, 2}), Row("b", {2, 1}), Row("c", {1, 1})}), IsOk());
  std::vector<uint64_t> read_after;
  hooks_.read_changes = [&](uint64_t after) {
    read_after.push_back(after);
    return absl::OkStatus();
  };
  hooks_.changes_part = [](ItemChanges* changes, std::vector<Item>*) {
    changes->deleted.clear();
    return absl::OkStatus();
  };
  ASSERT_THAT(Delete({"b"}), IsOk());
  EXPECT_THAT(Found(), UnorderedElementsAre("a", "c"));
  EXPECT_THAT(read_after, ElementsAre(3, 0));
}

TEST_F(EncryptedCollectionTest, UpsertOverTheLimitIsRefusedBeforeItIsStored) {
  ASSERT_THAT(Upsert({Row("a", {1, 2})}), IsOk());
  SetLimit(Now().resident_memory() + 100);
  EXPECT_THAT(Upsert({Row(std::string(400, 'b'), {2, 1})}),
              FailsWith(kExhausted, "the rows of collection notes"));
  EXPECT_EQ(Now().items, 1u);
  EXPECT_THAT(Found(), ElementsAre("a"));
  SetLimit(1);
  EXPECT_THAT(Delete({"a"}), IsOk());
  EXPECT_THAT(Found(), ::testing::IsEmpty());
}

TEST_F(EncryptedCollectionTest, EvaluationKeysMakeRoomForRows) {
  ASSERT_THAT(Upsert({Row("a", {1, 2})}), IsOk());
  const int count = 2 * lattice::CountLevels(32) * lattice::kDigits;
  const auto keys =
      std::make_shared<lattice::EvaluationKeys>(lattice::EvaluationKeys{32, lattice::Words(count)});
  SetLimit(Now().resident_memory() + static_cast<int64_t>(lattice::EvaluationKeys::Memory(32)));
  EXPECT_TRUE(catalog_->CacheEvaluationKeys("first", keys, "a"));
  EXPECT_TRUE(catalog_->CacheEvaluationKeys("second", keys, "a"));
  EXPECT_EQ(catalog_->evaluation_keys().Find("first"), nullptr) << "there is room for one";
  EXPECT_NE(catalog_->evaluation_keys().Find("second"), nullptr);
  EXPECT_THAT(Upsert({Row(std::string(400, 'b'), {2, 1})}), IsOk());
  EXPECT_EQ(catalog_->evaluation_keys().Find("second"), nullptr);
  EXPECT_FALSE(catalog_->CacheEvaluationKeys("second", keys, "a")) << "the rows took the room";
}

TEST_F(EncryptedCollectionTest, WithoutLoadedRowsStoredItemsCountAndDeletionsWork) {
  std::vector<Item> items;
  for (int i = 0; i < 100; ++i) items.push_back(Row(absl::StrCat(i), std::vector<float>(2000, 1)));
  ASSERT_THAT(Upsert(items), IsOk());
  const int64_t memory = Now().resident_memory();
  ReopenWithoutLoad();
  SetLimit(memory / 2);
  blocked_ = false;
  EXPECT_THAT(Upsert({Row("new", std::vector<float>(2000, 1))}),
              FailsWith(kExhausted, "the rows of collection notes"));
  EXPECT_EQ(Now().items, 100u) << "nothing was stored";
  EXPECT_THAT(Delete({"7"}), IsOk());
  EXPECT_EQ(Now().items, 99u);
  ASSERT_TRUE(
      WaitUntil([&] { return Rows().problem().code() == absl::StatusCode::kResourceExhausted; }));
  EXPECT_THAT(Rows().problem().message(), ::testing::HasSubstr("memory / 2"));
  EXPECT_EQ(Rows().rows(), nullptr);
  EXPECT_TRUE(WaitUntil([&] { return Rows().memory() == 0; }));
  SetLimit(kAllMemory);
  ASSERT_TRUE(WaitForRows()) << "tried again without a write";
  EXPECT_THAT(Rows().problem(), IsOk());
  EXPECT_THAT(Found(), Not(Contains("7")));
  EXPECT_EQ(Rows().rows()->items, 99);
}

// As when another daemon with a higher limit wrote.
TEST_F(EncryptedCollectionTest, RowsThatOutgrowTheLimitAreReleasedNotServedStale) {
  ASSERT_THAT(Upsert({Row("a", {1, 2}), Row("b", {1, 3})}), IsOk());
  hooks_.changes_part = [](ItemChanges*, std::vector<Item>* part) {
    for (Item& item : *part) item.payload.assign(1 << 20, ' ');
    return absl::OkStatus();
  };
  SetLimit(Now().resident_memory() + 100'000);
  ASSERT_THAT(Upsert({Row("c", {2, 1})}), IsOk()) << "stored, but not searchable";
  EXPECT_EQ(Rows().rows(), nullptr);
  EXPECT_TRUE(WaitUntil([&] { return Rows().memory() == 0; })) << "something stays allocated";
  EXPECT_THAT(Delete({"a"}), IsOk());
  SetLimit(kAllMemory);
  ASSERT_TRUE(WaitForRows());
  EXPECT_THAT(Found(), UnorderedElementsAre("b", "c"));
}

TEST_F(EncryptedCollectionTest, RestoreCountsRows) {
  ASSERT_THAT(Upsert({Row("a", std::vector<float>(kDim, 1))}), IsOk());
  ASSERT_OK_AND_ASSIGN(SnapshotContents contents, Parse(SnapshotOf(*catalog_, Now())));
  contents.collection.name = "copy";
  SetLimit(Now().resident_memory() + 10'000);  // less than a block of rows
  EXPECT_THAT(Restore(catalog_.get(), contents), FailsWith(kExhausted, "memory / 2"));
  EXPECT_THAT(catalog_->Find("copy"), FailsWith(kNotFound));
  SetLimit(kAllMemory);
  ASSERT_OK_AND_ASSIGN(const CollectionView copy, Restore(catalog_.get(), contents));
  ASSERT_NE(copy.encrypted->rows(), nullptr) << "searchable at once";
  EXPECT_THAT(IdsOf(copy.encrypted->rows()), ElementsAre("a"));
}

TEST_F(EncryptedCollectionTest, WritesDoNotWaitForLoadWhichFindsThem) {
  ASSERT_THAT(Upsert({Row("a", {1, 2}), Row("b", {1, 3})}), IsOk());
  std::atomic<bool> loading = false, go_on = false;
  hooks_.changes_part = [&](ItemChanges*, std::vector<Item>*) {
    loading = true;
    EXPECT_TRUE(WaitUntil([&] { return go_on.load(); }));
    return absl::OkStatus();
  };
  ReopenWith(&hooks_);
  ASSERT_TRUE(WaitUntil([&] { return loading.load(); }));
  EXPECT_THAT(Upsert({Row("c", {2, 1})}), IsOk());
  EXPECT_THAT(Delete({"a"}), IsOk());
  EXPECT_EQ(Rows().rows(), nullptr);
  go_on = true;
  ASSERT_TRUE(WaitForRows());
  EXPECT_THAT(Found(), UnorderedElementsAre("b", "c"));
}

TEST_F(EncryptedCollectionTest, LoadStopsBetweenPartsAndFreesItsMemory) {
  ASSERT_THAT(Upsert(WideRows(0, 149)), IsOk());
  const PublicParameters parameters = Now().published->parameters;
  catalog_.reset();
  std::atomic<bool> stopped = false;
  int parts = 0;
  hooks_.changes_part = [&](ItemChanges*, std::vector<Item>*) {
    stopped = ++parts == 2;
    return absl::OkStatus();
  };
  StoreWithHooks store(*SqliteStore::Open(directory_.path()), &hooks_);
  EncryptedCollection rows([&](int64_t) { return absl::OkStatus(); });
  EXPECT_THAT(rows.Load(store, parameters, stopped), FailsWith(kCancelled));
  EXPECT_EQ(parts, 2);
  EXPECT_EQ(rows.memory(), 0);
  EXPECT_EQ(rows.rows(), nullptr);
  EXPECT_THAT(rows.Load(store, parameters, kGoOn), IsOk());
  EXPECT_EQ(rows.rows()->items, 150);
  EXPECT_EQ(rows.memory(), rows.rows()->memory);
}

// Writers with ids of their own, readers, and one load at any time among them.
TEST_F(EncryptedCollectionTest, ConcurrentReadersFindWhatIsAcknowledged) {
  constexpr int kWriters = 4, kRounds = 60;
  ASSERT_THAT(Upsert({Row("first", {1, 2})}), IsOk());
  ReopenWith(&hooks_);
  std::mutex mutex;
  std::set<std::string> there, gone;  // as acknowledged; each id is written once and deleted once
  std::atomic<int> running = kWriters;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < kRounds; ++i) {
        const std::string id = absl::StrCat(writer, "-", i);
        EXPECT_THAT(Upsert({Row(id, {1, static_cast<float>(i)})}), IsOk());
        {
          const std::lock_guard<std::mutex> guard(mutex);
          there.insert(id);
        }
        if (i % 2 == 0) continue;
        {
          const std::lock_guard<std::mutex> guard(mutex);
          there.erase(id);
        }
        EXPECT_THAT(Delete({id}), IsOk());
        const std::lock_guard<std::mutex> guard(mutex);
        gone.insert(id);
      }
      --running;
    });
  }
  int looks = 0;
  for (bool is_last = false; !is_last;) {
    is_last = running == 0;
    std::set<std::string> wanted, unwanted;
    {
      const std::lock_guard<std::mutex> guard(mutex);
      wanted = there;
      unwanted = gone;
    }
    const auto rows = Rows().rows();
    if (rows == nullptr) continue;
    ++looks;
    const Ids found = IdsOf(rows);
    const std::set<std::string> ids(found.begin(), found.end());
    for (const std::string& id : unwanted) EXPECT_EQ(ids.count(id), 0u) << id;
    // An item may have been deleted since `wanted` was copied.
    const std::lock_guard<std::mutex> guard(mutex);
    for (const std::string& id : wanted) EXPECT_GE(ids.count(id), there.count(id)) << id;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(looks, 1);
  EXPECT_EQ(Found().size(), 1u + kWriters * kRounds / 2);
}

}  // namespace
}  // namespace privatemail::testing
