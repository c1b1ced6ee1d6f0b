#include "server/engine/collection.h"

#include "tests/testing/build_cells.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

StoredCollection CollectionOfTwoCells() {
  StoredCollection collection{.name = "fruit", .parameters = {}, .anchors = SmallAnchors()};
  CellPartition halves{.cells = 2, .cell_of_anchor = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}};
  collection.parameters = *MakePublicParameters("uuid", SmallSettings(), collection.anchors, {},
                                                "vectors", {halves}, CellCode::kFloat16);
  return collection;
}

// Deletions of another daemon may be known only after the item is there again.
TEST(Collection, ItemReinsertedBeforeGalleryIsReadIsFound) {
  const StoredCollection collection = CollectionOfTwoCells();
  const auto retriever = [&](uint64_t version, uint64_t items_version) {
    Embedding embedding = SomeEmbedding(6);
    embedding.version = version;
    embedding.items_version = items_version;
    return std::make_shared<const Retriever>(collection.parameters, collection.anchors.labels,
                                             embedding);
  };
  const auto fruit = std::make_shared<Collection>(collection, nullptr);
  ASSERT_TRUE(fruit->InstallRetriever(retriever(1, 10), {}));
  const CollectionView before = fruit->view();
  fruit->RecordItems(6, 10);
  ASSERT_THAT(fruit->BeginBuild(/*needs_items=*/true), IsOk());
  ASSERT_TRUE(fruit->BeginCells().has_value());
  // Versions 11: deleted, 12: inserted again, 13: this one deleted; read together.
  fruit->AdoptDeletions({.retriever = before.retriever}, 13,
                        {{{"item-001", 11}, {"item-002", 13}}});
  EXPECT_EQ(fruit->view().hidden->count, 2);
  ASSERT_TRUE(fruit->InstallRetriever(retriever(2, 12), {}));
  Gallery gallery = GalleryOf(MakeItems(6, 1));
  gallery.version = 12;
  fruit->InstallCells(BuildCells(collection.parameters, collection.anchors, gallery));
  const CollectionView view = fruit->view();
  const std::vector<bool> deleted = {false, false, true, false, false, false};
  EXPECT_EQ(view.hidden->hidden, deleted);
  EXPECT_EQ(view.hidden_in_cells->hidden, deleted);
}

// Another daemon's deletion may be known only from its later embedding.
TEST(Collection, LaterEmbeddingHidesItsMissingItemsInCells) {
  const StoredCollection collection = CollectionOfTwoCells();
  Gallery gallery = GalleryOf(MakeItems(6, 1));
  gallery.version = 6;
  const auto cells = BuildCells(collection.parameters, collection.anchors, gallery);
  for (const auto& [items_version, missing] : {std::pair{6U, 0}, {5U, 0}, {7U, 2}}) {
    const auto fruit = std::make_shared<Collection>(collection, nullptr);
    // Named, because clang 14 captures no structured binding.
    const auto install = [&, items_version = items_version](int items, uint64_t version) {
      Embedding embedding = SomeEmbedding(items);
      embedding.version = version;
      embedding.items_version = version == 1 ? 6 : items_version;
      ASSERT_TRUE(
          fruit->InstallRetriever(std::make_shared<const Retriever>(
                                      collection.parameters, collection.anchors.labels, embedding),
                                  {}));
    };
    install(6, 1);
    fruit->InstallCells(cells);
    EXPECT_EQ(fruit->view().hidden_in_cells, nullptr);
    install(4, 2);
    const auto hidden = fruit->view().hidden_in_cells;
    EXPECT_EQ(hidden == nullptr ? 0 : hidden->count, missing) << items_version;
  }
}

}  // namespace
}  // namespace privatemail::testing
