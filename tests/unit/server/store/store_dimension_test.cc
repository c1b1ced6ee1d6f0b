// The contract of Store: collections without anchors, and items without labels.
#include <set>
#include <thread>

#include "common/items/item_checks.h"
#include "tests/unit/server/store/store_backend.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

StoredCollection WithoutAnchors(const std::string& name) {
  StoredCollection collection;
  collection.name = name;
  collection.parameters = *MakeParametersWithoutAnchors(*NewUuid(), "vectors", Metric::kEuclidean);
  return collection;
}

class StoreDimension : public StoreConformance {
 protected:
  void SetUp() override {
    StoreConformance::SetUp();
    ASSERT_THAT(store_->Create(notes_), IsOk());
  }

  const std::string& uuid() const { return notes_.parameters.collection_uuid; }
  // As stored now.
  PublicParameters Stored() const { return store_->LoadCollection(uuid()).value().parameters; }

  const StoredCollection notes_ = WithoutAnchors("notes");
};

TEST_P(StoreDimension, CollectionWithoutItemsIsReadAsItIs) {
  Reopen();
  EXPECT_EQ(Fingerprint(Stored()), Fingerprint(notes_.parameters));
  ASSERT_OK_AND_ASSIGN(const Gallery gallery, store_->LoadGallery(notes_.parameters));
  EXPECT_THAT(gallery.ids, IsEmpty());
  EXPECT_THAT(store_->GetItems(notes_.parameters, {{"a"}}), IsOk());
  EXPECT_THAT(store_->ScrollItems(notes_.parameters, {}, "", 5), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto embedding, store_->LoadEmbedding(notes_.parameters));
  EXPECT_FALSE(embedding.has_value());
}

TEST_P(StoreDimension, FirstCallFixesIt) {
  EXPECT_EQ(*store_->FixDimension(uuid(), kDim), kDim);
  EXPECT_EQ(*store_->FixDimension(uuid(), 9), kDim);
  Reopen();  // as after a crash before the first item
  PublicParameters expected = notes_.parameters;
  expected.feature_dim = kDim;
  EXPECT_EQ(Fingerprint(Stored()), Fingerprint(expected));
  EXPECT_THAT(Stored().anchor_digest, SizeIs(32));
  EXPECT_EQ(*store_->FixDimension(uuid(), 9), kDim);
  // A collection with anchors has their dimension.
  EXPECT_EQ(*store_->FixDimension(collection_.parameters.collection_uuid, 9), kDim);
  const StoredCollection fruit = *store_->LoadCollection(collection_.parameters.collection_uuid);
  EXPECT_EQ(Fingerprint(fruit.parameters), Fingerprint(collection_.parameters));
}

TEST_P(StoreDimension, ClassNamesAreAppendedAndNeverChanged) {
  ASSERT_THAT(store_->AppendClassNames(uuid(), {"b"}), IsOk());
  ASSERT_THAT(store_->AppendClassNames(uuid(), {"b", "a"}), IsOk());
  for (const std::vector<std::string>& others : {std::vector<std::string>{"b"}, {"a", "b", "c"}}) {
    EXPECT_THAT(store_->AppendClassNames(uuid(), others),
                FailsWith(kAborted, "must begin with the 2 names that the collection has"));
  }
  EXPECT_THAT(store_->AppendClassNames(uuid(), {"b", "a", "b"}),
              FailsWith(kInvalid, "class_names must differ"));
  EXPECT_THAT(store_->AppendClassNames("none", {"a"}), FailsWith(kNotFound, "none"));
  Reopen();
  EXPECT_THAT(Stored().class_names, ::testing::ElementsAre("b", "a"));
}

TEST_P(StoreDimension, UnknownCollectionAndImpossibleDimensionAreRefused) {
  EXPECT_THAT(store_->FixDimension("none", 4), FailsWith(kNotFound, "none"));
  for (const int64_t dimension : {-1, 0, 16385}) {
    EXPECT_THAT(store_->FixDimension(uuid(), dimension),
                FailsWith(kInvalid, "dimension must be between 1 and 16384"));
  }
  EXPECT_EQ(Stored().feature_dim, 0);
}

TEST_P(StoreDimension, ConcurrentCallsAgree) {
  std::set<int64_t> fixed;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int64_t dimension = 1; dimension <= 8; ++dimension) {
    threads.emplace_back([&, dimension] {
      const int64_t now = store_->FixDimension(uuid(), dimension).value();
      const std::lock_guard<std::mutex> guard(mutex);
      fixed.insert(now);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_THAT(fixed, SizeIs(1));
  EXPECT_EQ(*fixed.begin(), Stored().feature_dim);
}

TEST_P(StoreDimension, ItemsMayHaveAnyLabelOrNone) {
  ASSERT_THAT(store_->FixDimension(uuid(), kDim), IsOk());
  const PublicParameters parameters = Stored();
  std::vector<Item> items = {MakeItem("a", kNoLabel, 1), MakeItem("b", 0, 2),
                             MakeItem("c", 123456, 3), MakeItem("d", -1, 4)};
  ASSERT_OK_AND_ASSIGN(UpsertResult result, store_->Upsert(parameters, items));
  EXPECT_EQ(result.inserted, 4u);
  items[1].label = kNoLabel;
  ASSERT_OK_AND_ASSIGN(result, store_->Upsert(parameters, items));
  EXPECT_EQ(result.updated, 1u) << "a label that is taken away is a change";
  EXPECT_EQ(result.unchanged, 3u);
  Reopen();
  ASSERT_OK_AND_ASSIGN(const Gallery gallery, store_->LoadGallery(parameters));
  EXPECT_THAT(gallery.labels, ElementsAre(kNoLabel, kNoLabel, 123456, -1));
  EXPECT_EQ(store_->GetItems(parameters, {"a"})->front().label, kNoLabel);
}

TEST_P(StoreDimension, ImportWithoutItemsAndWithUnlabelledOnes) {
  ASSERT_THAT(Import(store_.get(), WithoutAnchors("empty"), GalleryOf({})), IsOk());
  StoredCollection filled = WithoutAnchors("filled");
  const Gallery gallery = GalleryOf({MakeItem("a", kNoLabel, 1), MakeItem("b", 8, 2)});
  EXPECT_THAT(Import(store_.get(), filled, gallery), FailsWith(kInvalid, "expected 0, got 4"));
  filled.parameters.feature_dim = kDim;
  ASSERT_THAT(Import(store_.get(), filled, gallery), IsOk());
  ASSERT_OK_AND_ASSIGN(const Gallery loaded, store_->LoadGallery(filled.parameters));
  EXPECT_THAT(loaded.labels, ElementsAre(kNoLabel, 8));
}

TEST_P(StoreDimension, AnchorsWithoutLabelsAreStored) {
  StoredCollection shapes;
  shapes.name = "shapes";
  shapes.anchors = SmallAnchors();
  shapes.anchors.labels.clear();
  shapes.parameters =
      *MakePublicParameters(*NewUuid(), {.alpha = 0}, shapes.anchors, {}, "vectors");
  shapes.parameters.with_encrypted = true;
  ASSERT_THAT(store_->Create(shapes), IsOk());
  Reopen();
  ASSERT_OK_AND_ASSIGN(const StoredCollection loaded,
                       store_->LoadCollection(shapes.parameters.collection_uuid));
  EXPECT_EQ(Fingerprint(loaded.parameters), Fingerprint(shapes.parameters));
  EXPECT_EQ(loaded.anchors.features, shapes.anchors.features);
  EXPECT_THAT(loaded.anchors.labels, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreDimension, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace privatemail::testing
