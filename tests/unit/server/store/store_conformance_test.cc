// The contract of Store: collections, galleries and embeddings.
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/store/store_backend.h"

namespace privatemail::testing {
namespace {

using ::testing::SizeIs;

TEST_P(StoreConformance, UpsertCountsInsertedUpdatedUnchanged) {
  std::vector<Item> items = MakeItems(5, 1);
  UpsertResult result = Upsert(items);
  EXPECT_EQ(result.inserted, 5u);
  EXPECT_EQ(result.updated + result.unchanged, 0u);

  items[0].label = 9;
  items[1].features[2] += 1;
  items[2].payload = R"({"file": "x.png"})";
  items.push_back(MakeItem("new", 3, 77));
  result = Upsert(items);
  EXPECT_EQ(result.inserted, 1u);
  EXPECT_EQ(result.updated, 3u);
  EXPECT_EQ(result.unchanged, 2u);
  EXPECT_EQ(result.stripped, 0u);

  const Gallery gallery = Load();
  EXPECT_EQ(gallery.labels[0], 9);
  EXPECT_EQ(gallery.features(1, 2), items[1].features[2]);
  EXPECT_EQ(gallery.payloads[2], R"({"file": "x.png"})");
  EXPECT_THAT(gallery.ids, SizeIs(6));
  items[0].label = kNoLabel;
  items[2].payload = "";
  EXPECT_EQ(Upsert(items).stripped, 2u);
}

TEST_P(StoreConformance, GalleryOfAnyIdsAndJsonIsOrderedByIdBytes) {
  const std::string with_nul("a\0b", 3), longest(512, 'x');
  std::vector<Item> items;
  for (const std::string& id : {std::string("b"), std::string("\xc3\xa9"), std::string("a"),
                                with_nul, std::string("B"), std::string("aa"), longest}) {
    items.push_back(MakeItem(id, 3, static_cast<unsigned>(items.size())));
  }
  items[1].payload = "null";
  items[2].payload = std::string(64, '[') + std::string(64, ']');
  EXPECT_EQ(Upsert(items).inserted, 7u);
  EXPECT_THAT(Load().ids,
              ::testing::ElementsAre("B", "a", with_nul, "aa", "b", longest, "\xc3\xa9"));
}

TEST_P(StoreConformance, CodebookIsStoredBitForBit) {
  StoredCollection stored = SmallCollection("codebook");
  stored.parameters.feature_dim = 12;
  stored.anchors.features = FloatMatrix::Random(12, 12);
  stored.parameters.anchor_digest = DigestOf(stored.anchors);
  stored.parameters.cell_partitions = {{2, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}}};
  stored.parameters.cell_code = CellCode::kPq8;
  stored.parameters.cell_codebook = ProductCodebook{
      .centroids = FloatMatrix::Random(12, 256), .parts = 8, .relative_squared_error = 1. / 3};
  ASSERT_THAT(store_->Create(stored), IsOk());
  Reopen();
  ASSERT_OK_AND_ASSIGN(const StoredCollection loaded,
                       store_->LoadCollection(stored.parameters.collection_uuid));
  EXPECT_EQ(Fingerprint(loaded.parameters), Fingerprint(stored.parameters));
  ASSERT_TRUE(loaded.parameters.cell_codebook.has_value());
  EXPECT_EQ(loaded.parameters.cell_codebook->centroids, stored.parameters.cell_codebook->centroids);
  EXPECT_EQ(loaded.parameters.cell_codebook->parts, 8);
  EXPECT_EQ(loaded.parameters.cell_codebook->relative_squared_error, 1. / 3);
}

TEST_P(StoreConformance, ReopeningKeepsEverythingBitForBit) {
  std::vector<Item> items = MakeItems(7, 1);
  items[3].payload = "[1,2]";
  Upsert(items);
  const Embedding embedding = SomeEmbedding(7);
  ASSERT_THAT(store_->SaveEmbedding(collection_.parameters, embedding), IsOk());
  Reopen();

  ASSERT_OK_AND_ASSIGN(const auto collections, store_->LoadCollections());
  ASSERT_THAT(collections, SizeIs(1));
  const StoredCollection& loaded = collections.front();
  EXPECT_EQ(loaded.name, "fruit");
  EXPECT_EQ(loaded.items, 7u);
  EXPECT_EQ(Fingerprint(loaded.parameters), Fingerprint(collection_.parameters));
  EXPECT_EQ(loaded.anchors.features, collection_.anchors.features);
  EXPECT_EQ(loaded.anchors.labels, collection_.anchors.labels);

  const Gallery gallery = Load(), expected = GalleryOf(items);
  EXPECT_EQ(gallery.ids, expected.ids);
  EXPECT_EQ(gallery.labels, expected.labels);
  EXPECT_EQ(gallery.payloads, expected.payloads);
  EXPECT_EQ(gallery.features, expected.features);

  ASSERT_OK_AND_ASSIGN(const auto restored, store_->LoadEmbedding(collection_.parameters));
  ASSERT_TRUE(restored.has_value());
  EXPECT_EQ(restored->version, 1u);
  EXPECT_EQ(restored->objective, -1.25);
  EXPECT_EQ(restored->ids, embedding.ids);
  EXPECT_EQ(restored->labels, embedding.labels);
  EXPECT_EQ(restored->coordinates, embedding.coordinates);
  EXPECT_EQ(restored->anchor_coordinates, embedding.anchor_coordinates);
  EXPECT_THAT(store_->Create(SmallCollection("fruit")),
              FailsWith(kAlreadyExists, "collection fruit exists already"));
}

CellQuality SomeQuality() {
  CellQuality quality{.queries = 1200, .items = {8, 11}, .epsilons = {.5, 2}, .partitions = {}};
  const MeasuredQuality mean{.fidelity = {.29, .003}, .recall = {.57, .014}};
  quality.partitions.push_back({{4, mean}, {4, mean}});
  return quality;
}

// Images of several parts, of which the last is full or not.
TEST_P(StoreConformance, CellsBelongToTheirEmbedding) {
  StoredCollection cells = SmallCollection("cells");
  cells.parameters.cell_partitions = {{2, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}}};
  cells.parameters.cell_code = CellCode::kScalar8;
  const PublicParameters& parameters = cells.parameters;
  const auto no_limit = [](int64_t) { return absl::OkStatus(); };
  const auto load = [&](const EmbeddingVersion& of) {
    auto loaded = store_->LoadCells(parameters, of, no_limit);
    EXPECT_THAT(loaded, IsOk());
    return *std::move(loaded);
  };
  std::string image(2 * kImagePartBytes, 'a');
  image[kImagePartBytes] = 'b';
  EXPECT_THAT(store_->SaveCells(parameters, {}, image), FailsWith(kNotFound));
  ASSERT_THAT(store_->Create(cells), IsOk());
  ASSERT_THAT(store_->SaveEmbedding(parameters, SomeEmbedding(5)), IsOk());
  const EmbeddingVersion first{1, static_cast<int64_t>(SomeEmbedding(5).items_version)};
  EXPECT_FALSE(load(first).has_value());
  EXPECT_THAT(store_->SaveQuality(parameters, first, SomeQuality()), IsOk());
  ASSERT_THAT(store_->SaveCells(parameters, first, image), IsOk());
  image.pop_back();
  ASSERT_THAT(store_->SaveCells(parameters, first, image), IsOk());
  Reopen();
  ASSERT_TRUE(load(first).has_value());
  EXPECT_TRUE(load(first)->image == image) << "too long to print";
  EXPECT_FALSE(load(first)->quality.has_value());
  EXPECT_FALSE(load({2, first.items_version}).has_value());
  EXPECT_FALSE(load({1, first.items_version + 1}).has_value());

  int64_t bytes = 0;
  const auto refuse = [&](int64_t read) {
    bytes = read;
    return absl::ResourceExhaustedError("too many");
  };
  EXPECT_THAT(store_->LoadCells(parameters, first, refuse), FailsWith(kExhausted, "too many"));
  EXPECT_EQ(bytes, std::ssize(image));
  const auto aborted = FailsWith(kAborted, "another embedding, of version 1");
  EXPECT_THAT(store_->SaveCells(parameters, {2, first.items_version}, image), aborted);
  EXPECT_THAT(store_->SaveQuality(parameters, {1, first.items_version + 1}, SomeQuality()),
              aborted);
  ASSERT_THAT(store_->SaveQuality(parameters, first, SomeQuality()), IsOk());
  EXPECT_EQ(load(first)->quality->partitions[0].own[3].recall.standard_error, .014);

  // Replaced with their embedding, deleted with their collection.
  EXPECT_GT(Rows("cell_parts"), 0);
  ASSERT_THAT(store_->SaveEmbedding(parameters, SomeEmbedding(5)), IsOk());
  EXPECT_EQ(Rows("cell_parts"), 0);
  EXPECT_FALSE(load({2, first.items_version}).has_value());
  ASSERT_THAT(store_->SaveCells(parameters, {2, first.items_version}, image), IsOk());
  EXPECT_FALSE(load({2, first.items_version})->quality.has_value());
  ASSERT_THAT(store_->Delete(parameters.collection_uuid), IsOk());
  EXPECT_EQ(Rows("cell_parts"), 0);
  EXPECT_THAT(store_->LoadCells(parameters, {2, first.items_version}, no_limit),
              FailsWith(kNotFound));
}

TEST_P(StoreConformance, DeleteRemovesCollectionOnly) {
  const StoredCollection other = SmallCollection("fish");
  ASSERT_THAT(store_->Create(other), IsOk());
  ASSERT_THAT(store_->Upsert(other.parameters, MakeItems(2, 5)), IsOk());
  Upsert(MakeItems(5, 1));
  DeleteItems({"item-004"});
  ASSERT_THAT(store_->SaveEmbedding(collection_.parameters, SomeEmbedding(4)), IsOk());

  ASSERT_OK_AND_ASSIGN(const auto deleted, store_->Delete(collection_.parameters.collection_uuid));
  EXPECT_EQ(deleted, 4u);
  for (const auto& [table, rows] : {std::pair{"collections", 1},
                                    {"items", 2},
                                    {"deletions", 0},
                                    {"embeddings", 0},
                                    {"embedded_items", 0}}) {
    EXPECT_EQ(Rows(table), rows) << table;
  }
  const PublicParameters& gone = collection_.parameters;
  const auto unknown = FailsWith(kNotFound);
  EXPECT_THAT(store_->Delete(gone.collection_uuid), unknown);
  EXPECT_THAT(store_->Upsert(gone, MakeItems(1, 1)), unknown);
  EXPECT_THAT(store_->LoadGallery(gone), unknown);
  EXPECT_THAT(store_->LoadEmbedding(gone), unknown);
  EXPECT_THAT(store_->LoadCollection(gone.collection_uuid), unknown);
  EXPECT_THAT(store_->DeleteItems(gone, {{"item-000"}}), unknown);
  EXPECT_THAT(store_->GetItems(gone, {{"item-000"}}), unknown);
  EXPECT_THAT(store_->ScrollItems(gone, {}, "", 1), unknown);
  EXPECT_THAT(store_->CountItems(gone, {}, {}), unknown);
  EXPECT_THAT(store_->CountChanges(gone), unknown);
  EXPECT_THAT(store_->DeletedSince(gone, 1, 0), unknown);
  EXPECT_THAT(store_->SaveEmbedding(gone, SomeEmbedding(1)), unknown);
}

TEST_P(StoreConformance, ConcurrentWritersAreCounted) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 10; ++i) {
        Upsert({MakeItem(absl::StrCat(writer, "-", i), 3, 1), MakeItem("shared", writer, i)});
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(store_->LoadCollections()->front().items, 41u);
  std::set<uint64_t> versions;
  for (const Item& item : store_->ScrollItems(collection_.parameters, {}, "", 100)->items) {
    versions.insert(item.version);
  }
  EXPECT_THAT(versions, SizeIs(41));
  EXPECT_EQ(store_->ListStates()->front().latest_version, 80u);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreConformance, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace privatemail::testing
