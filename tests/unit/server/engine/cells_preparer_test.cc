#include "server/engine/cells_preparer.h"

#include <functional>
#include <limits>

#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Five embedded items, whose coordinates are their numbers.
struct EmbeddedScene {
  StoredCollection collection = SmallCollection("fruit");
  Embedding embedding = SomeEmbedding(5);

  EmbeddedScene() {
    embedding.version = 7;
    embedding.items_version = 5;
    for (int i = 0; i < 5; ++i) {
      embedding.coordinates.row(i) << i, 2 * i;
      embedding.payloads[static_cast<size_t>(i)] = "\"embedded\"";
    }
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
  ASSERT_OK_AND_ASSIGN(const CellCoordinates coordinates, embedded.Coordinates());
  EXPECT_THAT(gallery.ids, ElementsAre("item-000", "item-002", "item-003", "item-004"));
  EXPECT_THAT(gallery.labels, ElementsAre(3, 9, 3, 5));
  EXPECT_EQ(gallery.labels[1], scene.embedding.labels[2]);
  EXPECT_THAT(gallery.payloads, ::testing::Each("\"embedded\""));
  EXPECT_EQ(gallery.version, 5u);
  ASSERT_EQ(gallery.features.rows(), 4);
  EXPECT_EQ(gallery.features.row(1), Eigen::Map<const Eigen::RowVectorXf>(features.data(), kDim))
      << "where it answers";
  EXPECT_EQ(gallery.features.row(3), GalleryOf(MakeItems(5, 1)).features.row(4));
  EXPECT_EQ(coordinates.embedding_version, 7u);
  EXPECT_EQ(coordinates.items, (FloatMatrix(4, 2) << 0, 0, 2, 4, 3, 6, 4, 8).finished());
  EXPECT_EQ(coordinates.anchors, scene.embedding.anchor_coordinates.cast<float>());
}

// Inserted again under the id of a deleted item.
TEST(EmbeddingFilter, DropsHiddenItems) {
  const EmbeddedScene scene;
  const Retriever retriever = scene.MakeRetriever();
  const HiddenRows hidden{{true, false, false, true, false}, 2};
  Gallery gallery = Later(MakeItems(5, 1));
  EmbeddingFilter embedded(retriever, &hidden);
  embedded.Keep(&gallery);
  ASSERT_OK_AND_ASSIGN(const CellCoordinates coordinates, embedded.Coordinates());
  EXPECT_THAT(gallery.ids, ElementsAre("item-001", "item-002", "item-004"));
  EXPECT_EQ(coordinates.items.rows(), 3);

  gallery = Later({MakeItem("other", 3, 1)});
  EmbeddingFilter others(retriever, nullptr);
  others.Keep(&gallery);
  ASSERT_OK_AND_ASSIGN(const CellCoordinates none, others.Coordinates());
  EXPECT_THAT(gallery.ids, IsEmpty());
  EXPECT_EQ(none.items.rows(), 0);
}

// The parts that a store passes.
TEST(EmbeddingFilter, PartsGiveTheSameAsTheWhole) {
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
  ASSERT_OK_AND_ASSIGN(const CellCoordinates coordinates, embedded.Coordinates());
  EXPECT_EQ(coordinates.items, (FloatMatrix(4, 2) << 0, 0, 2, 4, 3, 6, 4, 8).finished());
}

TEST(EmbeddingFilter, OverflowInFloatReturnsFailedPrecondition) {
  const auto coordinates_of = [](const EmbeddedScene& scene) {
    const Retriever retriever = scene.MakeRetriever();
    EmbeddingFilter embedded(retriever, nullptr);
    Gallery gallery = Later(MakeItems(5, 1));
    embedded.Keep(&gallery);
    return embedded.Coordinates().status();
  };
  EmbeddedScene scene;
  scene.embedding.coordinates(3, 1) = 1e300;
  EXPECT_THAT(coordinates_of(scene), FailsWith(absl::StatusCode::kFailedPrecondition,
                                               "coordinates must be finite as floats"));
  scene.embedding.coordinates(3, 1) = 0;
  scene.embedding.anchor_coordinates *= 1e-60;
  EXPECT_THAT(coordinates_of(scene), FailsWith(absl::StatusCode::kFailedPrecondition,
                                               "coordinates of the anchors as floats: "));
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
      [](CellContents* of) { of->gallery.labels[2] = 3; },
      [](CellContents* of) { of->anchor_coordinates = FloatMatrix::Random(12, 2); }};
  for (const auto& change : changes) {
    CellContents other = contents();
    change(&other);
    EXPECT_THAT(TakePayloads(retriever, &other),
                FailsWith(absl::StatusCode::kDataLoss, "of another embedding"));
  }
}

}  // namespace
}  // namespace privatemail::testing
