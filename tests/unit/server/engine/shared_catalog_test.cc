// Two catalogs on one PostgreSQL database.
#include <atomic>
#include <new>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/engine/catalog.h"
#include "server/store/postgres/postgres_store.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/temporary_folder.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/engine/store_with_hooks.h"
#include "tests/unit/server/fixtures.h"
#include "tests/unit/server/snapshots.h"
#include "tests/unit/server/store/store_backend.h"

namespace privatemail::testing {
namespace {

class SharedCatalog : public ::testing::Test {
 protected:
  std::unique_ptr<Catalog> OpenCatalog(const StoreHooks* hooks = nullptr) {
    std::unique_ptr<Store> store = *PostgresStore::Open(conninfo_);
    if (hooks != nullptr) store = std::make_unique<StoreWithHooks>(std::move(store), hooks);
    auto catalog = Catalog::Open(std::move(store), directory_.path());
    EXPECT_THAT(catalog, IsOk());
    return *std::move(catalog);
  }

  static NewCollection Fruit() { return {"fruit", SmallSettings(), SmallAnchors(), {}, "vectors"}; }

  CollectionView CreateFruit(int items) {
    auto view = one_->Create(Fruit());
    EXPECT_THAT(view, IsOk());
    EXPECT_THAT(one_->Upsert(*view, MakeItems(items, 1)), IsOk());
    return *view;
  }

  std::shared_ptr<const PublishedCollection> CreateWithCells(const char* name) {
    NewCollection collection = Fruit();
    collection.name = name;
    collection.cells = {3, 4};
    collection.cell_code = CellCode::kFloat16;
    const auto view = one_->Create(std::move(collection));
    EXPECT_THAT(view, IsOk());
    EXPECT_THAT(one_->Upsert(*view, MakeItems(20, 1)), IsOk());
    return view->published;
  }

  // The other catalog's view; empty: unknown.
  CollectionView Other() const { return other_->Find("fruit").value_or(CollectionView{}); }
  uint64_t OtherVersion() const {
    const CollectionView view = Other();
    return view.retriever == nullptr ? 0 : view.retriever->version();
  }

  const TemporaryFolder directory_;
  const std::string conninfo_ = SharedPostgres().NewDatabase();
  std::unique_ptr<Catalog> one_ = OpenCatalog();
  std::unique_ptr<Catalog> other_ = OpenCatalog();
};

TEST_F(SharedCatalog, AdoptsCollectionsItemsAndEmbeddings) {
  const CollectionView view = CreateFruit(5);
  EXPECT_TRUE(WaitUntil([&] { return Other().items == 5; }));
  EXPECT_EQ(Other().published->fingerprint, view.published->fingerprint);
  EXPECT_EQ(Other().published->anchors.features, view.published->anchors.features);
  ASSERT_OK_AND_ASSIGN(const CollectionView built, one_->Build("fruit", nullptr));
  ASSERT_TRUE(WaitUntil([&] { return OtherVersion() == 1; }));
  const RetrievalQuery query{Matrix::Random(15, 2), 3, 3, nullptr};
  ASSERT_OK_AND_ASSIGN(const RetrievalAnswer own, built.retriever->Retrieve(query));
  ASSERT_OK_AND_ASSIGN(const RetrievalAnswer others, Other().retriever->Retrieve(query));
  for (int slot = 0; slot < 3; ++slot) {
    EXPECT_EQ(own.slots[slot][0].row, others.slots[slot][0].row);
    EXPECT_EQ(own.slots[slot][0].squared_distance, others.slots[slot][0].squared_distance);
  }
  ASSERT_THAT(other_->Upsert(Other(), MakeItems(7, 1)), IsOk());
  ASSERT_THAT(other_->Build("fruit", nullptr), IsOk());
  EXPECT_TRUE(WaitUntil([&] { return one_->Find("fruit")->retriever->version() == 2; }));
  EXPECT_EQ(one_->Find("fruit")->embedded_items(), 7u);
  EXPECT_EQ(one_->Find("fruit")->items, 7u);
}

TEST_F(SharedCatalog, AdoptsDimensionAndClassNames) {
  const NewCollection fruit{
      .name = "fruit", .settings = {}, .anchors = {}, .class_names = {"a"}, .extractor = "vectors"};
  ASSERT_OK_AND_ASSIGN(const CollectionView view, one_->Create(fruit));
  ASSERT_TRUE(WaitUntil([&] { return Other().published != nullptr; }));
  const CollectionView before = Other();
  EXPECT_EQ(before.published->parameters.feature_dim, 0);
  const auto third = OpenCatalog();  // without an upsert of its own, which would ask the store
  ASSERT_THAT(one_->Upsert(view, MakeItems(3, 1)), IsOk());
  // The other daemon may not know yet: the store decides.
  Item narrow = MakeItem("narrow", 3, 1);
  narrow.features = {1, 2};
  ASSERT_OK_AND_ASSIGN(const UpsertResult refused, other_->Upsert(before, {{narrow}}));
  ASSERT_EQ(refused.rejected.size(), 1u);
  EXPECT_EQ(refused.rejected[0].reason, "features has the wrong dimension: expected 4, got 2");
  for (const Catalog* catalog : {other_.get(), third.get()}) {
    EXPECT_TRUE(WaitUntil([&] {
      return catalog->Find("fruit")->published->fingerprint ==
             one_->Find("fruit")->published->fingerprint;
    }));
  }
  EXPECT_EQ(OpenCatalog()->Find("fruit")->published->parameters.feature_dim, kDim);
  ASSERT_THAT(one_->AppendClassNames(view, {"a", "b"}), IsOk());
  ASSERT_THAT(one_->Upsert(view, MakeItems(4, 1)), IsOk());
  const auto adopted = [&](size_t names) {
    return WaitUntil([&] { return Other().published->parameters.class_names.size() == names; });
  };
  EXPECT_TRUE(adopted(2));
  const auto has_rows = [](const Catalog& catalog, int64_t wanted) {
    return WaitUntil([&] {
      const auto rows = catalog.Find("fruit")->encrypted->rows();
      return rows != nullptr && rows->items == wanted;
    });
  };
  EXPECT_TRUE(has_rows(*other_, 4)) << "which encrypted searches read";
  ASSERT_THAT(other_->DeleteItems(Other(), {{"item-000"}}), IsOk());
  EXPECT_TRUE(has_rows(*one_, 3));
  // Names alone raise no version, and an upload that does not have them makes them known at once.
  ASSERT_THAT(one_->AppendClassNames(view, {"a", "b", "c"}), IsOk());
  EXPECT_TRUE(adopted(3));
  const auto fourth = OpenCatalog();
  // Loading holds the connection that the following calls are to find in the pool.
  ASSERT_TRUE(WaitUntil([&] { return fourth->Find("fruit")->encrypted->rows() != nullptr; }));
  PostgresServer::RefuseListeners(conninfo_);
  ASSERT_THAT(one_->AppendClassNames(view, {"a", "b", "c", "d"}), IsOk());
  EXPECT_THAT(fourth->AppendClassNames(*fourth->Find("fruit"), {"a", "b", "c", "x"}),
              FailsWith(kAborted, "fetch them again"));
  EXPECT_EQ(fourth->Find("fruit")->published->parameters.class_names.size(), 4u);
  PostgresServer::AllowConnections(conninfo_);
}

TEST_F(SharedCatalog, AdoptsDeletions) {
  const CollectionView view = CreateFruit(5);
  ASSERT_THAT(one_->Build("fruit", nullptr), IsOk());
  ASSERT_TRUE(WaitUntil([&] { return OtherVersion() == 1; }));
  ASSERT_THAT(one_->DeleteItems(view, {{"item-002"}}), IsOk());
  // Its own change must not hide earlier changes of the other.
  ASSERT_THAT(other_->DeleteItems(Other(), {{"item-004"}}), IsOk());
  EXPECT_TRUE(WaitUntil([&] { return Other().embedded_items() == 3; }));
  EXPECT_TRUE(Other().hidden->hidden[2]);
  EXPECT_TRUE(Other().hidden->hidden[4]);
  EXPECT_TRUE(WaitUntil([&] { return one_->Find("fruit")->embedded_items() == 3; }));
  EXPECT_EQ(OpenCatalog()->Find("fruit")->embedded_items(), 3u) << "nor one that starts later";
}

TEST_F(SharedCatalog, AdoptsRecreatedCollection) {
  CreateFruit(3);
  ASSERT_TRUE(WaitUntil([&] { return Other().items == 3; }));
  const CollectionView former = Other();
  ASSERT_THAT(one_->Delete("fruit"), IsOk());
  EXPECT_TRUE(WaitUntil([&] { return Other().published == nullptr; }));
  EXPECT_THAT(other_->Upsert(former, MakeItems(1, 1)),
              FailsWith(kNotFound, "collection fruit does not exist"));
  ASSERT_OK_AND_ASSIGN(const CollectionView again, one_->Create(Fruit()));
  EXPECT_TRUE(WaitUntil([&] { return Other().published != nullptr; }));
  EXPECT_EQ(Other().published->fingerprint, again.published->fingerprint);
  EXPECT_THAT(other_->Create(Fruit()), FailsWith(kAlreadyExists, "fruit"));
}

// The one that builds is delayed, so that the others request the cells before it ends.
TEST_F(SharedCatalog, OneDaemonMakesCellsForAll) {
  std::atomic<int> galleries = 0;
  std::atomic<int> lookups = 0;
  StoreHooks hooks;
  hooks.read_gallery = [&] {
    // The first is that of the embedding.
    if (++galleries != 2) return;
    EXPECT_TRUE(WaitUntil([&] { return lookups >= 7; }));
  };
  hooks.load_cells = [&](std::optional<StoredCells>*) {
    return ++lookups == 3 ? absl::UnavailableError("away for a moment") : absl::OkStatus();
  };
  other_ = OpenCatalog(&hooks);
  one_ = OpenCatalog(&hooks);
  CreateWithCells("fruit");
  ASSERT_TRUE(WaitUntil([&] { return Other().items == 20; }));
  ASSERT_THAT(one_->Build("fruit", nullptr), IsOk());
  const auto ready = [](const Catalog& catalog) {
    CollectionView now;
    const bool made = WaitUntil([&] {
      now = *catalog.Find("fruit");
      return now.cells != nullptr;
    });
    EXPECT_TRUE(made) << now.cells_problem;
    return made ? WriteCellImage(now.published->parameters, now.cells->contents()) : "";
  };
  const std::string image = ready(*one_);
  EXPECT_EQ(ready(*other_), image);
  EXPECT_EQ(ready(*OpenCatalog(&hooks)), image) << "one that starts later";
  EXPECT_EQ(galleries, 2);
  one_.reset();  // before the hooks
  other_.reset();
}

TEST_F(SharedCatalog, EmbeddingThatDoesNotFitMemoryIsTakenOverLater) {
  std::atomic<int> reads = 0;
  StoreHooks hooks;
  hooks.read_embedding = [&](const PublicParameters&) {
    if (++reads == 1) throw std::bad_alloc();
    return absl::OkStatus();
  };
  other_ = OpenCatalog(&hooks);
  CreateFruit(5);
  ASSERT_THAT(one_->Build("fruit", nullptr), IsOk());
  EXPECT_TRUE(WaitUntil([&] { return OtherVersion() == 1; }));
  EXPECT_EQ(reads, 2);
  other_.reset();  // before the hooks
}

TEST_F(SharedCatalog, CellsThatAnotherMakesDelayNoOthers) {
  const auto has_cells = [&](const char* name) { return one_->Find(name)->cells != nullptr; };
  other_.reset();
  const auto claimed = CreateWithCells("claimed");
  ASSERT_OK_AND_ASSIGN(const auto store, PostgresStore::Open(conninfo_));
  ASSERT_OK_AND_ASSIGN(auto claim, store->ClaimCells(claimed->parameters));
  ASSERT_NE(claim, nullptr);
  ASSERT_THAT(one_->Build("claimed", nullptr), IsOk());
  CreateWithCells("fruit");
  ASSERT_THAT(one_->Build("fruit", nullptr), IsOk());
  EXPECT_TRUE(WaitUntil([&] { return has_cells("fruit"); }));
  EXPECT_FALSE(has_cells("claimed"));
  claim.reset();
  EXPECT_TRUE(WaitUntil([&] { return has_cells("claimed"); }));
}

TEST_F(SharedCatalog, ItemDeletedByOtherDuringBuildIsHidden) {
  const CollectionView view = CreateFruit(5);
  ASSERT_TRUE(WaitUntil([&] { return Other().items == 5; }));
  const auto delete_it = [&](int done, int) {
    return done == 2 ? other_->DeleteItems(Other(), {{"item-003"}}).status() : absl::OkStatus();
  };
  ASSERT_THAT(one_->Build("fruit", delete_it), IsOk());
  EXPECT_TRUE(one_->Find("fruit")->hidden->hidden[3]) << "when the build returns";
  EXPECT_TRUE(WaitUntil([&] { return Other().embedded_items() == 4; }));
}

TEST_F(SharedCatalog, DaemonsConvergeAfterManyChanges) {
  const CollectionView view = CreateFruit(40);
  ASSERT_THAT(one_->Build("fruit", nullptr), IsOk());
  ASSERT_TRUE(WaitUntil([&] { return OtherVersion() == 1; }));
  const CollectionView others = Other();
  const auto change = [](Catalog* catalog, const CollectionView& fruit, int offset) {
    for (int i = 0; i < 20; ++i) {
      const std::string id = absl::StrCat("item-0", i < 5 ? "0" : "", 2 * i + offset);
      EXPECT_THAT(catalog->DeleteItems(fruit, {{id}}), IsOk());
      if (i % 3 == 0) {
        EXPECT_THAT(catalog->Upsert(fruit, {{MakeItem(absl::StrCat("new", i), 3, 1)}}), IsOk());
      }
    }
  };
  std::thread first([&] { change(one_.get(), view, 0); });
  std::thread builder([&] {
    // May be overtaken.
    for (int i = 0; i < 3; ++i) one_->Build("fruit", nullptr).status().IgnoreError();
  });
  change(other_.get(), others, 1);
  first.join();
  builder.join();
  ASSERT_OK_AND_ASSIGN(const auto store, PostgresStore::Open(conninfo_));
  ASSERT_OK_AND_ASSIGN(const auto stored, store->LoadEmbedding(view.published->parameters));
  const uint64_t findable = stored->ids.size() - stored->deleted.size();
  for (const Catalog* catalog : {one_.get(), other_.get()}) {
    EXPECT_TRUE(WaitUntil([&] {
      const CollectionView now = *catalog->Find("fruit");
      return now.items == 7 && now.retriever->version() == stored->version &&
             now.embedded_items() == findable;
    })) << (catalog == one_.get() ? "one" : "other");
  }
}

TEST_F(SharedCatalog, SearchesContinueDuringStoreOutage) {
  PostgresServer server;
  const std::string conninfo = server.NewDatabase();
  std::atomic<int> failures = 0;
  std::atomic<int> recoveries = 0;
  ASSERT_OK_AND_ASSIGN(
      const auto catalog,
      Catalog::Open(*PostgresStore::Open(conninfo), directory_.path(),
                    [&](const absl::Status& status) { ++(status.ok() ? recoveries : failures); }));
  ASSERT_OK_AND_ASSIGN(const CollectionView view, catalog->Create(Fruit()));
  ASSERT_THAT(catalog->Upsert(view, MakeItems(5, 1)), IsOk());
  ASSERT_THAT(catalog->Build("fruit", nullptr), IsOk());
  server.Kill();
  const RetrievalQuery query{Matrix::Random(15, 2), 3, 3, nullptr};
  EXPECT_THAT(catalog->Find("fruit")->retriever->Retrieve(query), IsOk());
  EXPECT_THAT(catalog->Upsert(view, MakeItems(6, 1)),
              FailsWith(kUnavailable, "the store is unavailable"));
  EXPECT_EQ(catalog->Find("fruit")->items, 5u);
  EXPECT_TRUE(WaitUntil([&] { return failures > 0; }));
  server.Start();
  ASSERT_OK_AND_ASSIGN(const auto elsewhere, PostgresStore::Open(conninfo));
  ASSERT_THAT(elsewhere->Upsert(view.published->parameters, MakeItems(8, 1)), IsOk());
  EXPECT_TRUE(WaitUntil([&] { return catalog->Find("fruit")->items == 8; }));
  EXPECT_TRUE(WaitUntil([&] { return recoveries > 0; }));
}

// Deleted and restored during an outage of the other: UUID and embedding version are equal, but the
// content differs.
TEST_F(SharedCatalog, RestoredUuidIsNotMistakenForDeletedCollection) {
  const CollectionView fruit = CreateFruit(5);
  const SnapshotContents contents = *Parse(SnapshotOf(*one_, fruit));
  ASSERT_THAT(one_->Upsert(fruit, MakeItems(8, 1)), IsOk());
  ASSERT_THAT(one_->Build("fruit", nullptr), IsOk());
  ASSERT_TRUE(WaitUntil([&] { return OtherVersion() == 1; }));
  ASSERT_EQ(Other().retriever->items(), 8);

  PostgresServer::RefuseListeners(conninfo_);
  ASSERT_THAT(one_->Delete("fruit"), IsOk());
  ASSERT_OK_AND_ASSIGN(const CollectionView restored, Restore(one_.get(), contents));
  EXPECT_EQ(restored.published->fingerprint, fruit.published->fingerprint);
  ASSERT_THAT(one_->Build("fruit", nullptr), IsOk());
  PostgresServer::AllowConnections(conninfo_);
  EXPECT_TRUE(
      WaitUntil([&] { return Other().retriever != nullptr && Other().retriever->items() == 5; }));
  EXPECT_EQ(OtherVersion(), 1u);
}

}  // namespace
}  // namespace privatemail::testing
