// The contract of Store: imports.

#include "tests/unit/server/store/store_backend.h"

namespace privatemail::testing {
namespace {

using StoreImport = StoreConformance;

TEST_P(StoreImport, ImportsAllItemsBitForBitAndWritable) {
  const StoredCollection fish = SmallCollection("fish");
  std::vector<Item> items = MakeItems(50, 7);
  items[3].payload = "[1,2]";
  Gallery gallery = GalleryOf(items);
  gallery.version = 70;
  ASSERT_THAT(Import(store_.get(), fish, gallery), IsOk());
  Reopen();
  ASSERT_OK_AND_ASSIGN(const auto loaded, store_->LoadCollection(fish.parameters.collection_uuid));
  EXPECT_EQ(loaded.name, "fish");
  EXPECT_EQ(loaded.items, 50u);
  EXPECT_EQ(loaded.latest_version, 120u);
  EXPECT_EQ(Fingerprint(loaded.parameters), Fingerprint(fish.parameters));
  EXPECT_EQ(loaded.anchors.features, fish.anchors.features);
  ASSERT_OK_AND_ASSIGN(const auto stored, store_->LoadGallery(fish.parameters));
  EXPECT_EQ(stored.version, 120u);
  EXPECT_EQ(stored.ids, gallery.ids);
  EXPECT_EQ(stored.labels, gallery.labels);
  EXPECT_EQ(stored.payloads, gallery.payloads);
  EXPECT_EQ(stored.features, gallery.features);
  ASSERT_OK_AND_ASSIGN(const auto some,
                       store_->GetItems(fish.parameters, {"item-000", "item-049"}));
  EXPECT_EQ(some[0].version, 71u);
  EXPECT_EQ(some[1].version, 120u);
  EXPECT_EQ(store_->CountChanges(fish.parameters)->inserted, 50u);
  items.push_back(MakeItem("new", 3, 1));
  ASSERT_OK_AND_ASSIGN(const auto upserted, store_->Upsert(fish.parameters, items));
  EXPECT_EQ(upserted.unchanged, 50u);
  EXPECT_EQ(upserted.latest_version, 121u);
  EXPECT_EQ(store_->DeleteItems(fish.parameters, {"item-002"})->items, 50u);
  EXPECT_EQ(*store_->Delete(fish.parameters.collection_uuid), 50u);
  EXPECT_EQ(Rows("items"), 0);
}

// Otherwise searches would find items of the deleted collection.
TEST_P(StoreImport, EmbeddingOfDeletedCollectionWithSameUuidIsRefused) {
  Upsert(MakeItems(5, 1));
  Gallery gallery = Load();
  Embedding embedding = SomeEmbedding(5);
  embedding.collection = gallery.collection;
  embedding.items_version = 5;
  ASSERT_THAT(store_->SaveEmbedding(collection_.parameters, embedding), IsOk());
  ASSERT_THAT(store_->Delete(collection_.parameters.collection_uuid), IsOk());
  ASSERT_THAT(Import(store_.get(), collection_, gallery), IsOk());
  EXPECT_THAT(store_->SaveEmbedding(collection_.parameters, embedding),
              FailsWith(kNotFound, collection_.parameters.collection_uuid));
  EXPECT_EQ(*store_->LoadEmbedding(collection_.parameters), std::nullopt);
  EXPECT_NE(Load().collection, gallery.collection);
  EXPECT_EQ(store_->ListStates()->front().key, Load().collection);
  embedding.collection = Load().collection;
  EXPECT_THAT(store_->SaveEmbedding(collection_.parameters, embedding), IsOk());
}

// One part per item, and empty parts.
TEST_P(StoreImport, PartsOfAnySizeAreImported) {
  StoredCollection fish = SmallCollection("fish");
  const Gallery whole = GalleryOf(MakeItems(9, 7));
  fish.items = 9;
  fish.latest_version = 70;
  const auto source = [](Store::GalleryPartVisitor visit) -> absl::Status {
    for (const Item& item : MakeItems(9, 7)) {
      for (const Gallery& part : {GalleryOf({item}), Gallery()}) {
        if (absl::Status visited = visit(part); !visited.ok()) return visited;
      }
    }
    return absl::OkStatus();
  };
  ASSERT_THAT(store_->Import(fish, source), IsOk());
  ASSERT_THAT(Import(store_.get(), SmallCollection("none"), Gallery()), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto stored, store_->LoadGallery(fish.parameters));
  EXPECT_EQ(stored.version, 79u);
  EXPECT_EQ(stored.ids, whole.ids);
  EXPECT_EQ(stored.features, whole.features);
  EXPECT_EQ(store_->GetItems(fish.parameters, {"item-008"})->front().version, 79u);
}

TEST_P(StoreImport, FailedSourceLeavesNothing) {
  StoredCollection fish = SmallCollection("fish");
  fish.items = 6;
  const auto import = [&](std::vector<Gallery> parts, const absl::Status& outcome = {}) {
    return store_->Import(fish, [&](Store::GalleryPartVisitor visit) -> absl::Status {
      for (const Gallery& part : parts) {
        if (absl::Status visited = visit(part); !visited.ok()) return visited;
      }
      return outcome;
    });
  };
  const std::vector<Item> six = MakeItems(6, 7);
  const Gallery first = GalleryOf(MakeItems(5, 7)), whole = GalleryOf(six);
  EXPECT_THAT(import({first}), FailsWith(kInvalid, "must have 6 items, but has 5"));
  EXPECT_THAT(import({GalleryOf(MakeItems(7, 7))}),
              FailsWith(kInvalid, "must have 6 items, but has 7"));
  EXPECT_THAT(import({first}, absl::DataLossError("the file is damaged")),
              FailsWith(kDataLoss, "the file is damaged"));
  for (const int next : {4, 3}) {
    EXPECT_THAT(import({first, GalleryOf({six[next]})}),
                FailsWith(kInvalid, "must ascend, but number 5"));
    EXPECT_THAT(import({GalleryOf({six[0], six[4], six[next]})}),
                FailsWith(kInvalid, "must ascend, but number 2"));
  }
  Gallery uneven = whole, wide = whole;
  uneven.labels.pop_back();
  EXPECT_THAT(import({uneven}),
              FailsWith(kInvalid, "has 6 ids, 5 labels, 6 payloads and 6 features"));
  wide.features.conservativeResize(6, kDim + 1);
  EXPECT_THAT(import({wide}), FailsWith(kInvalid, "features"));
  EXPECT_EQ(Rows("items"), 0);
  EXPECT_EQ(Rows("collections"), 1);
  EXPECT_THAT(import({whole}), IsOk());
}

// Also if the last part is full.
TEST_P(StoreImport, GalleryPartsHaveNoGap) {
  const int64_t whole = GalleryPartRows(kDim);
  for (const int64_t rows : {whole - 1, whole, whole + 1, 2 * whole, 2 * whole + 1}) {
    SCOPED_TRACE(rows);
    const Gallery gallery = ManyItems(static_cast<int>(rows));
    const StoredCollection fish = SmallCollection("fish");
    ASSERT_THAT(Import(store_.get(), fish, gallery), IsOk());
    std::vector<int64_t> sizes;
    Gallery read;
    FloatMatrix features(rows, kDim);
    const auto visit = [&](int64_t items, Gallery part) {
      EXPECT_EQ(items, rows);
      features.middleRows(std::ssize(read.ids), part.features.rows()) = part.features;
      sizes.push_back(part.features.rows());
      AppendRows(std::move(part), &read);
      return absl::OkStatus();
    };
    ASSERT_THAT(store_->ReadGallery(fish.parameters, visit), IsOk());
    EXPECT_EQ(read.ids, gallery.ids);
    EXPECT_EQ(features, gallery.features);
    EXPECT_EQ(sizes.size(), static_cast<size_t>((rows + whole - 1) / whole));
    for (const int64_t size : sizes) EXPECT_GT(size, 0);
    ASSERT_THAT(store_->Delete(fish.parameters.collection_uuid), IsOk());
  }
}

TEST_P(StoreImport, TakenNameOrUuidReturnsAlreadyExists) {
  const Gallery gallery = GalleryOf(MakeItems(3, 7));
  EXPECT_THAT(Import(store_.get(), SmallCollection("fruit"), gallery),
              FailsWith(kAlreadyExists, "collection fruit exists already"));
  StoredCollection copy = collection_;
  copy.name = "fish";
  EXPECT_THAT(Import(store_.get(), copy, gallery),
              FailsWith(kAlreadyExists, collection_.parameters.collection_uuid));
  EXPECT_EQ(Rows("items"), 0);
  EXPECT_EQ(Rows("collections"), 1);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreImport, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace privatemail::testing
