#include <functional>

#include "server/engine/catalog.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;

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
