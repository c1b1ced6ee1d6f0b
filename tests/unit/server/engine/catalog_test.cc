#include <chrono>
#include <functional>
#include <future>

#include "absl/strings/str_cat.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/engine/catalog_fixture.h"
#include "tests/unit/server/engine/orphan_rows.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(CatalogTest, ChecksNames) {
  NewCollection collection = Fruit();
  for (const char* name : {"a", "Fruit-2.v_1", "9"}) {
    collection.name = name;
    EXPECT_THAT(catalog_->Create(collection), IsOk()) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("-a"), std::string(".a"), std::string("a b"), std::string("a/b"),
        std::string(65, 'a'), std::string("\xc3\xa9")}) {
    collection.name = name;
    EXPECT_THAT(catalog_->Create(collection), FailsWith(kInvalid, "name must be 1 to 64")) << name;
  }
}

TEST_F(CatalogTest, InvalidCollectionIsNotCreated) {
  NewCollection collection = Fruit();
  collection.anchors.labels.pop_back();
  EXPECT_THAT(catalog_->Create(collection), FailsWith(kInvalid, "anchor_labels"));
  EXPECT_THAT(catalog_->List(), SizeIs(0));
  EXPECT_THAT(catalog_->Create(Fruit()), IsOk());
  EXPECT_THAT(catalog_->Create(Fruit()), FailsWith(kAlreadyExists, "fruit"));
}

TEST_F(CatalogTest, CreationThatWaitsInTheStoreBlocksNoDeletion) {
  CreateFruit(1);
  bool is_deleted = false;
  std::future<bool> deletion;
  const StoreHooks hooks{.create = [&] {
    deletion = std::async([&] { return catalog_->Delete("fruit").ok(); });
    is_deleted = deletion.wait_for(std::chrono::minutes(1)) == std::future_status::ready;
  }};
  ReopenWith(&hooks);
  NewCollection other = Fruit();
  other.name = "other";
  EXPECT_THAT(catalog_->Create(other), IsOk());
  EXPECT_TRUE(is_deleted && deletion.get());
}

TEST_F(CatalogTest, MalformedItemsAreRejectedAlone) {
  const CollectionView fruit = CreateFruit(0);
  const std::pair<std::function<void(Item*)>, const char*> bad[] = {
      {[](Item* item) { item->id.clear(); }, "id must be 1 to 512 bytes"},
      {[](Item* item) { item->id.assign(513, 'x'); }, "but has 513 bytes"},
      {[](Item* item) { item->id = "\xed\xa0\x80"; }, "not UTF-8"},  // a surrogate
      {[](Item* item) { item->features.resize(3); }, "expected 4, got 3"},
      {[](Item* item) { item->features[2] = std::nanf(""); }, "value in column 2 is nan"},
      {[](Item* item) { item->features.assign(kDim, 0); }, "all 4 values are zero"},
      {[](Item* item) { item->label = 4; }, "label must be one of the collection's 3 labels"},
      {[](Item* item) { item->payload = "{'a': 1}"; }, "payload must be empty or a JSON text"}};
  std::vector<Item> items = MakeItems(17, 1);
  for (size_t i = 0; i < 8; ++i) bad[i].first(&items[2 * i + 1]);
  ASSERT_OK_AND_ASSIGN(const UpsertResult result, catalog_->Upsert(fruit, items));
  EXPECT_EQ(result.inserted, 9u);
  ASSERT_THAT(result.rejected, SizeIs(8));
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(result.rejected[i].position, 2 * i + 1);
    EXPECT_THAT(result.rejected[i].reason, HasSubstr(bad[i].second));
  }
  EXPECT_EQ(catalog_->Find("fruit")->items, 9u);
}

TEST_F(CatalogTest, UnknownAndEmptyCollectionsAreRefused) {
  EXPECT_THAT(catalog_->Find("fruit"), FailsWith(kNotFound, "collection fruit does not exist"));
  EXPECT_THAT(catalog_->Delete("fruit"), FailsWith(kNotFound, "fruit"));
  EXPECT_THAT(catalog_->Build("fruit", nullptr), FailsWith(kNotFound, "fruit"));
  ASSERT_THAT(catalog_->Create(Fruit()), IsOk());
  EXPECT_THAT(catalog_->Build("fruit", nullptr), FailsWith(kFailedPrecondition, "has no items"));
}

TEST_F(CatalogTest, CollectionsBeyondResidentMemoryAreRefused) {
  CreateFruit(20);
  const int64_t empty = catalog_->Find("fruit")->resident_memory();
  ASSERT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  const int64_t built = catalog_->Find("fruit")->resident_memory();
  EXPECT_GT(built, empty);
  NewCollection fish = Fruit();
  fish.name = "fish";
  catalog_->SetOptions({.resident_memory = built + empty - 1});
  EXPECT_THAT(
      catalog_->Create(fish),
      FailsWith(kExhausted, absl::StrCat("the limit of ", built + empty - 1, " (memory / 2)")));
  EXPECT_THAT(catalog_->Find("fish"), FailsWith(kNotFound));
  catalog_->SetOptions({.resident_memory = built + empty});
  ASSERT_THAT(catalog_->Create(fish), IsOk());
  ASSERT_THAT(catalog_->Upsert(*catalog_->Find("fish"), MakeItems(9, 1)), IsOk());
  EXPECT_THAT(catalog_->Build("fish", nullptr),
              FailsWith(kExhausted, "the embedding of collection fish"));
  EXPECT_THAT(catalog_->Build("fruit", nullptr), IsOk()) << "replaces its own";
}

TEST_F(CatalogTest, BuildsAtTheSameTimeShareResidentMemory) {
  const CollectionView fruit = CreateFruit(20);
  CreateFruit(20, "fish");
  int64_t limit =
      1.5 * Retriever::MemoryFor(20, fruit.published->parameters.settings.embedding_dim);
  for (const CollectionView& one : catalog_->List()) limit += one.resident_memory();
  catalog_->SetOptions({.resident_memory = limit});
  absl::Status other;
  int calls = 0;
  const auto build_other = [&](double, int) {
    if (++calls == 1) return absl::OkStatus();  // before it takes memory
    other.Update(catalog_->Build("fish", nullptr).status());
    return absl::OkStatus();
  };
  ASSERT_THAT(catalog_->Build("fruit", build_other), IsOk());
  EXPECT_THAT(other, FailsWith(kExhausted, "memory / 2"));
  EXPECT_EQ(catalog_->Find("fish")->retriever, nullptr);
  ASSERT_THAT(catalog_->Delete("fruit"), IsOk());
  EXPECT_THAT(catalog_->Build("fish", nullptr), IsOk());
}

TEST_F(CatalogTest, StartBeyondResidentMemoryServesTheOthers) {
  CreateFruit(20);
  CreateFruit(9, "fish");
  for (const char* name : {"fruit", "fish"}) ASSERT_THAT(catalog_->Build(name, nullptr), IsOk());
  int64_t all = -1;
  for (const CollectionView& one : catalog_->List()) all += one.resident_memory();
  catalog_.reset();
  ASSERT_OK_AND_ASSIGN(
      catalog_, Catalog::Open(*SqliteStore::Open(directory_.path()), directory_.path(), nullptr,
                              {.resident_memory = all}));
  EXPECT_EQ(catalog_->Find("fish")->embedded_items(), 9u);
  EXPECT_EQ(catalog_->Find("fruit")->retriever, nullptr);
  EXPECT_THAT(catalog_->Find("fruit")->embedding_problem, FailsWith(kExhausted, "memory / 2"));
  EXPECT_THAT(catalog_->problems(), SizeIs(1));
  ASSERT_THAT(catalog_->Delete("fish"), IsOk());
  ASSERT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  EXPECT_THAT(catalog_->Find("fruit")->embedding_problem, IsOk());
  EXPECT_THAT(Findable(), SizeIs(20));
}

// A build can replace an embedding, but not stored items.
TEST_F(CatalogTest, DamagedEmbeddingLeavesOnlyItsCollectionUnbuilt) {
  const std::string uuid = CreateFruit(20).published->parameters.collection_uuid;
  CreateFruit(9, "fish");
  for (const char* name : {"fruit", "fish"}) ASSERT_THAT(catalog_->Build(name, nullptr), IsOk());
  StoreHooks hooks;
  hooks.read_embedding = [&](const PublicParameters& parameters) {
    return parameters.collection_uuid == uuid ? absl::DataLossError("a page is damaged")
                                              : absl::OkStatus();
  };
  ReopenWith(&hooks);
  ASSERT_THAT(catalog_->problems(), SizeIs(1));
  EXPECT_THAT(catalog_->problems()[0], HasSubstr("collection fruit is not built: its "
                                                 "embedding cannot be read: a page"));
  EXPECT_EQ(catalog_->Find("fruit")->retriever, nullptr);
  EXPECT_EQ(catalog_->Find("fruit")->items, 20u);
  EXPECT_EQ(catalog_->Find("fish")->embedded_items(), 9u);
  ASSERT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  EXPECT_THAT(Findable(), SizeIs(20));
  catalog_.reset();  // before the hooks
}

TEST_F(CatalogTest, SavedEmbeddingAnswersIfStoreFailsAfterwards) {
  StoreHooks hooks;
  ReopenWith(&hooks);
  CreateFruit(6);
  int polls = 0;
  hooks.deleted_since = [&] {
    return polls++ == 0 ? absl::UnavailableError("not now") : absl::OkStatus();
  };
  EXPECT_THAT(catalog_->Build("fruit", nullptr), FailsWith(kUnavailable, "not now"));
  EXPECT_EQ(catalog_->Find("fruit")->embedded_items(), 6u);
  EXPECT_THAT(Findable(), SizeIs(6));
  catalog_.reset();  // before the hooks
}

TEST_F(CatalogTest, WritesShowAfterNextBuildOnly) {
  const CollectionView view = CreateFruit(4);
  ASSERT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  std::vector<Item> more = MakeItems(6, 1);
  more[0].label = 9;
  more[0].payload = "[1]";
  ASSERT_THAT(catalog_->Upsert(view, more), IsOk());
  for (int restart = 0; restart < 2; ++restart) {
    const auto found = catalog_->Find("fruit");
    EXPECT_EQ(found->items, 6u);
    EXPECT_EQ(found->retriever->items(), 4);
    EXPECT_EQ(found->retriever->LabelOf(0), 3);
    EXPECT_EQ(found->retriever->PayloadOf(0), "");
    Reopen();
  }
  ASSERT_OK_AND_ASSIGN(const CollectionView rebuilt, catalog_->Build("fruit", nullptr));
  EXPECT_EQ(rebuilt.retriever->version(), 2u);
  EXPECT_EQ(rebuilt.retriever->items(), 6);
  EXPECT_EQ(rebuilt.retriever->PayloadOf(0), "[1]");
}

TEST_F(CatalogTest, BuildCancelledAtAnyStepLeavesFormerEmbedding) {
  const CollectionView view = CreateFruit(4);
  ASSERT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  ASSERT_THAT(catalog_->Upsert(view, MakeItems(9, 1)), IsOk());
  for (int stop = 0; stop <= 3; ++stop) {
    const auto observer = [&](int done, int steps) {
      EXPECT_EQ(steps, 3);
      return done == stop ? absl::CancelledError("stop") : absl::OkStatus();
    };
    EXPECT_THAT(catalog_->Build("fruit", observer), FailsWith(kCancelled, "stop"));
    EXPECT_EQ(catalog_->Find("fruit")->retriever->items(), 4);
    EXPECT_EQ(catalog_->Find("fruit")->retriever->version(), 1u);
  }
  EXPECT_EQ(catalog_->Build("fruit", nullptr)->retriever->items(), 9);
}

TEST_F(CatalogTest, SecondConcurrentBuildReturnsAborted) {
  CreateFruit(4);
  absl::Status second;
  const auto build_again = [&](int done, int) {
    if (done == 1) second = catalog_->Build("fruit", nullptr).status();
    return absl::OkStatus();
  };
  ASSERT_THAT(catalog_->Build("fruit", build_again), IsOk());
  EXPECT_THAT(second, FailsWith(kAborted, "is being built already"));
}

TEST_F(CatalogTest, DeletionDuringBuildReturnsAborted) {
  for (const int when : {0, 1, 3}) {
    CreateFruit(4);
    int last = -1;
    const auto delete_it = [&](int done, int) {
      last = done;
      return done == when ? catalog_->Delete("fruit").status() : absl::OkStatus();
    };
    EXPECT_THAT(catalog_->Build("fruit", delete_it),
                FailsWith(kAborted, "fruit was deleted while it was being built"));
    EXPECT_EQ(last, when) << "the work went on";
    EXPECT_THAT(catalog_->Find("fruit"), FailsWith(kNotFound));
  }
}

TEST_F(CatalogTest, RecreatedCollectionDoesNotGetOldBuild) {
  const CollectionView old = CreateFruit(4);
  const auto replace = [&](int done, int) {
    if (done != 3) return absl::OkStatus();
    EXPECT_EQ(*catalog_->Delete("fruit"), 4u);
    return catalog_->Create(Fruit()).status();
  };
  EXPECT_THAT(catalog_->Build("fruit", replace), FailsWith(kAborted));
  ASSERT_OK_AND_ASSIGN(const CollectionView young, catalog_->Find("fruit"));
  EXPECT_NE(young.published->fingerprint, old.published->fingerprint);
  EXPECT_EQ(young.retriever, nullptr);
  EXPECT_THAT(catalog_->Upsert(old, MakeItems(2, 1)), FailsWith(kNotFound, "fruit"));
  EXPECT_EQ(catalog_->Find("fruit")->items, 0u);
}

// No table of classes by classes.
TEST_F(CatalogTest, BuildMemoryIsLinearInClasses) {
  constexpr int kClasses = 3000;
  NewCollection many = Fruit();
  many.anchors.features = FloatMatrix::Random(kClasses, many.anchors.features.cols());
  many.anchors.labels.clear();
  for (int32_t label = 0; label < kClasses; ++label) many.anchors.labels.push_back(label);
  many.class_names.clear();
  ASSERT_OK_AND_ASSIGN(const CollectionView view, catalog_->Create(std::move(many)));
  EXPECT_LT(view.build_memory(CollectionView::Features::kInFile), int64_t{1000} * kClasses);
}

// A collection "wide" with large features and more rows than a gallery part.
class WideCatalogTest : public CatalogTest {
 protected:
  static constexpr int kWide = 64;
  static constexpr int kItems = 5200;

  WideCatalogTest() {
    NewCollection wide = Fruit();
    wide.name = "wide";
    wide.anchors.features = FloatMatrix::Random(wide.anchors.features.rows(), kWide);
    wide.settings.steps = 1;
    const auto view = catalog_->Create(std::move(wide));
    std::vector<Item> items = MakeItems(kItems, 1);
    for (Item& item : items) {
      const FloatMatrix row = FloatMatrix::Random(1, kWide);
      item.features.assign(row.data(), row.data() + kWide);
    }
    EXPECT_THAT(catalog_->Upsert(*view, items), IsOk());
  }

  CollectionView View() const { return *catalog_->Find("wide"); }
  int64_t MemoryWithoutFeatures() const {
    return View().build_memory(CollectionView::Features::kInFile) + kItems * 100;
  }
};

// Only a scratch file needs the folder, so a missing folder shows whether there was one.
TEST_F(WideCatalogTest, BuildAboveMemoryLimitUsesFileAndGivesSameEmbedding) {
  ASSERT_GT(View().build_memory(CollectionView::Features::kInMemory), MemoryWithoutFeatures());
  catalog_.reset();
  catalog_ = *Catalog::Open(*SqliteStore::Open(directory_.path()), directory_ / "absent");
  ASSERT_THAT(catalog_->Build("wide", nullptr), IsOk());
  EXPECT_THAT(catalog_->Build("wide", nullptr, MemoryWithoutFeatures()),
              FailsWith(kFailedPrecondition, "absent"));
  Reopen();
  const auto in_memory = View().retriever;
  ASSERT_THAT(catalog_->Build("wide", nullptr, MemoryWithoutFeatures()), IsOk());
  const auto from_file = View().retriever;
  EXPECT_EQ(from_file->version(), 2u);
  EXPECT_EQ(from_file->objective(), in_memory->objective());
  EXPECT_EQ(from_file->anchor_coordinates(), in_memory->anchor_coordinates());
  RetrievalQuery query = SomeQuery();
  query.post_processing_steps = 0;
  EXPECT_EQ(from_file->Retrieve(query)->slots[0][0].row,
            in_memory->Retrieve(query)->slots[0][0].row);
}

TEST_F(WideCatalogTest, PayloadsAboveMemoryLimitReturnResourceExhausted) {
  std::vector<Item> items = MakeItems(100, 1);
  for (Item& item : items) {
    item.features.assign(kWide, 1);
    item.payload = absl::StrCat("\"", std::string(100'000, 'x'), "\"");
  }
  ASSERT_THAT(catalog_->Upsert(View(), items), IsOk());
  EXPECT_THAT(catalog_->Build("wide", nullptr, MemoryWithoutFeatures()),
              FailsWith(kExhausted, "(memory / 4)"));
  EXPECT_THAT(catalog_->Build("wide", nullptr), IsOk());
}

class CatalogDeletions : public CatalogTest {};

TEST_F(CatalogDeletions, RowsOfADeletedCollectionAreRemovedInTheBackground) {
  CreateFruit(9);
  ASSERT_THAT(catalog_->Delete("fruit"), IsOk());
  EXPECT_TRUE(WaitUntil([&] { return CountOrphanRows(directory_.path()) == 0; }));
}

TEST_F(CatalogDeletions, DeletedItemIsHiddenAtOnceAndAfterRestart) {
  const CollectionView view = CreateFruit(4);
  ASSERT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  DeleteItems({"item-001", "item-0015", "none", "item-001"});
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_THAT(Findable(), ElementsAre("item-000", "item-002", "item-003"));
    EXPECT_EQ(catalog_->Find("fruit")->items, 3u);
    Reopen();
  }
  DeleteItems({"item-003"});
  EXPECT_THAT(Findable(), ElementsAre("item-000", "item-002"));
  // Inserted again, but the embedding still has the deleted one.
  ASSERT_THAT(catalog_->Upsert(view, std::vector<Item>{MakeItem("item-001", 9, 5)}), IsOk());
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_THAT(Findable(), ElementsAre("item-000", "item-002"));
    Reopen();
  }
  // Another one is inserted again just before the build reads the gallery.
  const auto insert_again = [&](int done, int) {
    return done == 0 ? catalog_->Upsert(view, {{MakeItem("item-003", 3, 4)}}).status()
                     : absl::OkStatus();
  };
  ASSERT_THAT(catalog_->Build("fruit", insert_again), IsOk());
  EXPECT_THAT(Findable(), ElementsAre("item-000", "item-001", "item-002", "item-003"));
}

TEST_F(CatalogDeletions, ItemDeletedDuringBuildIsHidden) {
  CreateFruit(6);
  for (const std::string id : {"item-001", "item-002"}) {
    const auto delete_it = [&](int done, int) {
      if (done == 2) DeleteItems({id});
      return absl::OkStatus();
    };
    ASSERT_THAT(catalog_->Build("fruit", delete_it), IsOk());
    EXPECT_THAT(Findable(), ::testing::Not(::testing::Contains(id)));
  }
  EXPECT_THAT(Findable(), ElementsAre("item-000", "item-003", "item-004", "item-005"));
  Reopen();
  EXPECT_THAT(Findable(), ElementsAre("item-000", "item-003", "item-004", "item-005"));
}

TEST_F(CatalogDeletions, ItemDeletedAfterDeletedSinceIsHidden) {
  StoreHooks hooks;
  ReopenWith(&hooks);
  CreateFruit(5);
  // After DeletedSince and before the new embedding is installed.
  hooks.deleted_since = [&] {
    DeleteItems({"item-001"});
    return absl::OkStatus();
  };
  ASSERT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  hooks.deleted_since = [] { return absl::OkStatus(); };
  EXPECT_THAT(Findable(), ElementsAre("item-000", "item-002", "item-003", "item-004"));
}

}  // namespace
}  // namespace privatemail::testing
