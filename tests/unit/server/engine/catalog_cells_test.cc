#include <atomic>
#include <functional>
#include <future>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/wire/proto_conversions.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/engine/catalog_fixture.h"
#include "tests/unit/server/snapshots.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// 700 anchors in 16 dimensions.
NewCollection WithProductCode() {
  NewCollection wide{"wide", SmallSettings(), {FloatMatrix::Random(700, 16), {}}, {}, "vectors"};
  for (int i = 0; i < 700; ++i) wide.anchors.labels.push_back(i % 3);
  wide.cells = {5};
  wide.cell_code = CellCode::kPq8;
  return wide;
}

class CatalogCells : public CatalogTest {
 protected:
  static NewCollection WithCells(std::vector<int64_t> cells = {3, 4}) {
    NewCollection fruit = Fruit();
    fruit.cells = std::move(cells);
    fruit.cell_code = CellCode::kFloat16;
    return fruit;
  }

  CollectionView Create(int items) {
    auto view = catalog_->Create(WithCells());
    EXPECT_THAT(view, IsOk());
    EXPECT_THAT(catalog_->Upsert(*view, MakeItems(items, 1)), IsOk());
    return *view;
  }

  void Build() { EXPECT_THAT(catalog_->Build("fruit", nullptr), IsOk()); }

  // Waits for cells of the current embedding.
  CollectionView Ready() const {
    return ReadyWhen([](const CollectionView& view) {
      return view.cells->embedding_version() == view.retriever->version();
    });
  }

  CollectionView ReadyWhen(const std::function<bool(const CollectionView&)>& ready) const {
    CollectionView view;
    EXPECT_TRUE(WaitUntil([&] {
      view = *catalog_->Find("fruit");
      return view.cells != nullptr && ready(view);
    })) << view.cells_problem;
    return view;
  }

  bool WaitForProblem(const std::string& part) const {
    return WaitUntil(
        [&] { return absl::StrContains(catalog_->Find("fruit")->cells_problem.message(), part); });
  }

  // Labels and payloads equal those of the retriever.
  static void ExpectItemsOfTheEmbedding(const CollectionView& view) {
    const CellIndex& cells = *view.cells;
    for (int64_t row = 0; row < cells.items(); ++row) {
      const auto embedded = view.retriever->RowOf(cells.IdOf(row));
      ASSERT_TRUE(embedded.has_value()) << cells.IdOf(row);
      EXPECT_EQ(cells.LabelOf(row), view.retriever->LabelOf(*embedded));
      EXPECT_EQ(cells.PayloadOf(row), view.retriever->PayloadOf(*embedded));
    }
  }

  // Visible ids of the cell index.
  static std::vector<std::string> Answering(const CollectionView& view) {
    std::vector<std::string> ids;
    for (int64_t row = 0; row < view.cells->items(); ++row) {
      const auto hidden = view.hidden_in_cells;
      if (hidden != nullptr && hidden->hidden[static_cast<size_t>(row)]) continue;
      ids.push_back(view.cells->IdOf(row));
    }
    return ids;
  }
};

TEST_F(CatalogCells, RestartPreparesSmallCollectionsFirst) {
  StoreHooks unstored;
  unstored.save_cells = [] { return absl::UnavailableError("no"); };
  ReopenWith(&unstored);
  for (const auto& [name, items] : {std::pair{"large", 40}, {"small", 5}, {"middle", 20}}) {
    NewCollection collection = WithCells();
    collection.name = name;
    ASSERT_OK_AND_ASSIGN(const CollectionView view, catalog_->Create(std::move(collection)));
    ASSERT_THAT(catalog_->Upsert(view, MakeItems(items, 1)), IsOk());
    ASSERT_THAT(catalog_->Build(name, nullptr), IsOk());
  }
  std::promise<void> opened;
  std::atomic<int> galleries = 0;
  std::vector<std::string> ready;  // when each gallery was read
  StoreHooks hooks;
  hooks.read_gallery = [&] {
    if (galleries == 0) opened.get_future().wait();
    std::string names;
    for (const CollectionView& view : catalog_->List()) {
      if (view.cells != nullptr) names += view.published->name + " ";
    }
    ready.push_back(names);
    ++galleries;
  };
  ReopenWith(&hooks);
  opened.set_value();
  EXPECT_TRUE(WaitUntil([&] { return galleries >= 3; }));
  catalog_.reset();  // before the hooks
  EXPECT_THAT(ready, ElementsAre("", "small ", "middle small "));
}

TEST_F(CatalogCells, FailedPreparationIsReportedAndRetriedByNextBuild) {
  std::atomic<int> galleries = 0;
  StoreHooks hooks;
  hooks.read_gallery = [&] {
    if (++galleries == 2) throw std::bad_alloc();
  };
  ReopenWith(&hooks);
  Create(5);
  Build();
  EXPECT_TRUE(WaitForProblem("cells of collection fruit could not be built"));
  Build();
  EXPECT_THAT(Answering(Ready()), SizeIs(5));
  EXPECT_THAT(catalog_->Find("fruit")->cells_problem, IsOk());
  catalog_.reset();
}

TEST_F(CatalogCells, PreparationAboveMemoryLimitReportsBothFigures) {
  const CollectionView created = Create(5);
  // The gallery counts too.
  const int64_t beside = CellIndex::MemoryToCreate(created.published->parameters, 5);
  for (const int64_t memory : {int64_t{1000}, beside}) {
    catalog_->SetOptions({.cells_memory = memory});
    Build();
    EXPECT_TRUE(WaitForProblem(absl::StrCat("limit of ", memory, " (memory / 4)")));
    EXPECT_THAT(catalog_->Find("fruit")->cells_problem,
                FailsWith(kUnavailable, "memory of building it in bytes is at least "));
  }
  catalog_->SetOptions({.cells_memory = beside + 10'000});
  Build();
  EXPECT_THAT(Answering(Ready()), SizeIs(5));
}

TEST_F(CatalogCells, FeaturesInAFileGiveTheSameCells) {
  Create(200);
  Build();
  Ready();
  DeleteItems({"item-003", "item-150"});
  const auto build = [&](int64_t memory) {
    catalog_->SetOptions({.cells_memory = memory});
    Build();
    const CollectionView view = Ready();
    EXPECT_EQ(view.cells->items(), 198);
    CellContents contents = view.cells->contents();
    contents.embedding_version = 0;
    return WriteCellImage(view.published->parameters, contents);
  };
  const CollectionView view = *catalog_->Find("fruit");
  const int64_t in_file = CellIndex::MemoryToCreate(view.published->parameters, 200) + 20'000;
  const int64_t in_memory =
      in_file + 200 * kDim * static_cast<int64_t>(sizeof(float)) + view.retriever->memory();
  EXPECT_EQ(build(in_file), build(in_memory));
}

// Changed items keep the label and payload of the embedding; new and deleted ones are missing.
TEST_F(CatalogCells, CellsAreOfEmbeddedItems) {
  std::atomic<int> galleries = 0;
  StoreHooks hooks;
  const auto put = [&](const std::string& id, int32_t label, unsigned seed) {
    Item item = MakeItem(id, label, seed);
    item.payload = "\"later\"";
    EXPECT_THAT(catalog_->Upsert(*catalog_->Find("fruit"), {{item}}), IsOk());
  };
  hooks.read_gallery = [&] {
    switch (++galleries) {
      case 1:  // the build's
        put("item-900", 3, 90);
        put("item-002", 3, 91);
        DeleteItems({"item-003", "item-004"});
        put("item-004", 5, 92);
        break;
      case 2:  // the cells', after it was read
        DeleteItems({"item-005"});
        put("item-005", 5, 93);
        break;
      default:
        break;
    }
  };
  ReopenWith(&hooks);
  Create(6);
  Build();
  const CollectionView view = Ready();
  EXPECT_THAT(Answering(view), ElementsAre("item-000", "item-001", "item-002"));
  EXPECT_EQ(view.cells->items_version(), 6u);
  EXPECT_EQ(view.cells->PayloadOf(2), "");
  ExpectItemsOfTheEmbedding(view);
  Build();
  const CollectionView later = Ready();
  EXPECT_THAT(Answering(later),
              ElementsAre("item-000", "item-001", "item-002", "item-004", "item-005", "item-900"));
  EXPECT_EQ(later.cells->PayloadOf(2), "\"later\"");
  ExpectItemsOfTheEmbedding(later);
  catalog_.reset();  // before the hooks
}

class StoredCellIndexes : public CatalogCells {
 protected:
  StoredCellIndexes() {
    hooks_.read_gallery = [this] { ++galleries_; };
    hooks_.load_cells = [this](std::optional<StoredCells>* cells) {
      if (*cells && damage_) (*cells)->image[100] ^= 1;
      return absl::OkStatus();
    };
    hooks_.save_cells = [this] {
      ++saves_;
      return saving_;
    };
    Restart();
  }
  ~StoredCellIndexes() override { catalog_.reset(); }  // before the hooks

  void Restart() {
    catalog_.reset();
    galleries_ = saves_ = 0;
    warnings_.clear();
    ASSERT_OK_AND_ASSIGN(
        catalog_, Catalog::Open(std::make_unique<StoreWithHooks>(
                                    *SqliteStore::Open(directory_.path()), &hooks_),
                                directory_.path(), nullptr, {}, [this](const std::string& warning) {
                                  warnings_.push_back(warning);
                                }));
  }

  StoreHooks hooks_;
  std::atomic<int> galleries_ = 0;
  std::atomic<int> saves_ = 0;
  std::vector<std::string> warnings_;  // read after a restart or the end of the catalog
  bool damage_ = false;
  absl::Status saving_;
};

TEST_F(StoredCellIndexes, RestartReadsWhatWasBuilt) {
  Item item = MakeItem("item-002", 9, 3);
  item.payload = "\"embedded\"";
  ASSERT_THAT(catalog_->Upsert(Create(20), {{item}}), IsOk());
  Build();
  Ready();
  DeleteItems({"item-001"});
  item.payload = "\"later\"";
  const std::vector<Item> later = {item, MakeItem("item-001", 3, 9), MakeItem("new", 3, 7)};
  ASSERT_THAT(catalog_->Upsert(*catalog_->Find("fruit"), later), IsOk());
  const CollectionView built = *catalog_->Find("fruit");
  Restart();
  const CollectionView view = Ready();
  EXPECT_EQ(galleries_, 0) << "nothing is built";
  EXPECT_EQ(WriteCellImage(view.published->parameters, view.cells->contents()),
            WriteCellImage(built.published->parameters, built.cells->contents()));
  EXPECT_EQ(Answering(view), Answering(built));
  EXPECT_THAT(Answering(view), ::testing::Not(::testing::Contains("item-001")));
  EXPECT_EQ(view.cells->PayloadOf(2), "\"embedded\"");
  EXPECT_EQ(saves_, 0);
}

TEST_F(StoredCellIndexes, DamagedOnesAreNoticedAndMadeAnew) {
  Create(5);
  Build();
  Ready();
  damage_ = true;
  Restart();
  EXPECT_THAT(Answering(Ready()), SizeIs(5));
  EXPECT_EQ(galleries_, 1);
  damage_ = false;
  catalog_.reset();  // waits for the store
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("cell index of collection fruit is replaced")));
  EXPECT_EQ(saves_, 1);
  Restart();
  EXPECT_THAT(Answering(Ready()), SizeIs(5));
  EXPECT_EQ(galleries_, 0) << "they were stored again";
}

TEST_F(StoredCellIndexes, UnstorableOnesAnswerWithAWarning) {
  saving_ = absl::ResourceExhaustedError("disk full");
  Create(5);
  Build();
  EXPECT_THAT(Answering(Ready()), SizeIs(5));
  catalog_.reset();
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("could not be stored")));
  Restart();
  EXPECT_THAT(Answering(Ready()), SizeIs(5));
  EXPECT_EQ(galleries_, 1);
}

TEST_F(StoredCellIndexes, ReadingIsLimited) {
  Create(5);
  Build();
  Ready();
  catalog_.reset();
  ASSERT_OK_AND_ASSIGN(catalog_, Catalog::Open(*SqliteStore::Open(directory_.path()),
                                               directory_.path(), nullptr, {.cells_memory = 500}));
  EXPECT_TRUE(WaitForProblem("memory of reading it in bytes is at least "));
}

// Both measure a gallery of 1,000 items.
TEST_F(StoredCellIndexes, RestartReadsMeasuredQuality) {
  NewCollection fruit = WithCells({3});
  fruit.publish_quality = true;
  ASSERT_OK_AND_ASSIGN(const CollectionView created, catalog_->Create(std::move(fruit)));
  ASSERT_THAT(catalog_->Upsert(created, MakeItems(1000, 1)), IsOk());
  Build();
  const auto measured = [](const CollectionView& view) { return view.quality != nullptr; };
  const CollectionView built = ReadyWhen(measured);
  Restart();
  const CollectionView view = ReadyWhen(measured);
  EXPECT_EQ(galleries_, 0);
  v1::CellQuality expected, read;
  ToProto(*built.quality, &expected);
  ToProto(*view.quality, &read);
  EXPECT_EQ(read.SerializeAsString(), expected.SerializeAsString());

  // Another start may find cells whose measurement was interrupted.
  hooks_.load_cells = [](std::optional<StoredCells>* cells) {
    (*cells)->quality.reset();
    return absl::OkStatus();
  };
  Restart();
  EXPECT_NE(ReadyWhen(measured).cells, nullptr);
  EXPECT_EQ(galleries_, 1);
  EXPECT_EQ(saves_, 0);
}

// Clients decode stored codes with the codebook. The fingerprint covers it and the partitions.
TEST_F(CatalogCells, SnapshotKeepsPartitionsAndCodebook) {
  ASSERT_OK_AND_ASSIGN(const CollectionView wide, catalog_->Create(WithProductCode()));
  EXPECT_EQ(wide.published->parameters.cell_codebook.value().centroids_per_part(), 16);
  ASSERT_OK_AND_ASSIGN(const SnapshotContents contents, Parse(SnapshotOf(*catalog_, wide)));
  const auto restore = [&](const std::function<void(PublicParameters*)>& change) {
    EXPECT_THAT(catalog_->Delete("wide").status().code(),
                ::testing::AnyOf(absl::StatusCode::kOk, absl::StatusCode::kNotFound));
    SnapshotContents changed = contents;
    change(&changed.collection.parameters);
    return Restore(catalog_.get(), changed);
  };
  ASSERT_OK_AND_ASSIGN(const CollectionView back, restore([](auto*) {}));
  EXPECT_EQ(back.published->fingerprint, wide.published->fingerprint);
  EXPECT_THAT(restore([](auto* p) { p->cell_partitions[0].cell_of_anchor.pop_back(); }),
              FailsWith(kDataLoss, "snapshot: cell_partitions[0]"));
  EXPECT_THAT(restore([](auto* p) { p->cell_codebook.reset(); }),
              FailsWith(kDataLoss, "snapshot: cell_codebook must be given"));
}

// Five embedded items.
struct EmbeddedScene {
  StoredCollection collection = SmallCollection("fruit");
  Embedding embedding = SomeEmbedding(5);

  EmbeddedScene() {
    embedding.version = 7;
    embedding.items_version = 5;
    embedding.payloads.assign(5, "\"embedded\"");
  }

  Retriever MakeRetriever() const {
    return Retriever(collection.parameters, collection.anchors.labels, embedding);
  }
};

Gallery Later(const std::vector<Item>& items) {
  Gallery gallery = GalleryOf(items);
  gallery.version = 12;
  return gallery;
}

TEST(EmbeddingFilter, KeepsCommonItemsAsEmbedded) {
  const EmbeddedScene scene;
  const Retriever retriever = scene.MakeRetriever();
  std::vector<Item> items = MakeItems(7, 1);  // of which two are new
  items[2].label = 9;
  items[2].payload = "\"later\"";
  items[2].features[0] += 1;
  const std::vector<float> features = items[2].features;
  items.erase(items.begin() + 1);
  Gallery gallery = Later(items);
  EmbeddingFilter embedded(retriever, nullptr);
  embedded.Keep(&gallery);
  EXPECT_THAT(gallery.ids, ElementsAre("item-000", "item-002", "item-003", "item-004"));
  EXPECT_THAT(gallery.labels, ElementsAre(3, 9, 3, 5));
  EXPECT_EQ(gallery.labels[1], scene.embedding.labels[2]);
  EXPECT_THAT(gallery.payloads, ::testing::Each("\"embedded\""));
  EXPECT_EQ(gallery.version, 5u);
  ASSERT_EQ(gallery.features.rows(), 4);
  EXPECT_EQ(gallery.features.row(1), Eigen::Map<const Eigen::RowVectorXf>(features.data(), kDim))
      << "where it answers";
  EXPECT_EQ(gallery.features.row(3), GalleryOf(MakeItems(5, 1)).features.row(4));
}

// The parts that a store passes. A hidden item was inserted again.
TEST(EmbeddingFilter, DropsHiddenItemsOfAllParts) {
  const EmbeddedScene scene;
  const Retriever retriever = scene.MakeRetriever();
  const HiddenRows hidden{{false, true, false, false, false}, 1};
  const std::vector<Item> items = MakeItems(7, 1);
  EmbeddingFilter embedded(retriever, &hidden);
  std::vector<std::string> ids;
  for (const auto& [first, last] : {std::pair(0, 2), {2, 2}, {2, 3}, {3, 7}}) {
    Gallery part = Later({items.begin() + first, items.begin() + last});
    part.features.conservativeResize(last - first, kDim);
    embedded.Keep(&part);
    ids.insert(ids.end(), part.ids.begin(), part.ids.end());
    EXPECT_EQ(part.features.rows(), std::ssize(part.ids));
  }
  EXPECT_THAT(ids, ElementsAre("item-000", "item-002", "item-003", "item-004"));
}

TEST(TakePayloads, OtherEmbeddingIsDataLoss) {
  const EmbeddedScene scene;
  const Retriever retriever = scene.MakeRetriever();
  const auto contents = [&] {
    CellContents stored{.gallery = GalleryOf(MakeItems(5, 1)), .embedding_version = 7};
    stored.gallery.version = 5;
    stored.gallery.payloads.assign(5, "");
    return stored;
  };
  CellContents same = contents();
  ASSERT_THAT(TakePayloads(retriever, &same), IsOk());
  EXPECT_THAT(same.gallery.payloads, ::testing::Each("\"embedded\""));
  const std::function<void(CellContents*)> changes[] = {
      [](CellContents* of) { of->embedding_version = 8; },
      [](CellContents* of) { of->gallery.version = 6; },
      [](CellContents* of) { of->gallery.ids[4] = "item-005"; },
      [](CellContents* of) { of->gallery.ids[0] = "item"; },
      [](CellContents* of) { of->gallery.labels[2] = 3; }};
  for (const auto& change : changes) {
    CellContents other = contents();
    change(&other);
    EXPECT_THAT(TakePayloads(retriever, &other), FailsWith(kDataLoss, "of another embedding"));
  }
}

}  // namespace
}  // namespace privatemail::testing
