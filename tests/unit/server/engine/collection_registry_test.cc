#include "server/engine/collection_registry.h"

#include "server/cells/cell_index.h"
#include "server/engine/retriever.h"
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
TEST(CollectionRegistry, ItemReinsertedBeforeGalleryIsReadIsFound) {
  const StoredCollection collection = CollectionOfTwoCells();
  const auto retriever = [&](uint64_t version, uint64_t items_version) {
    Embedding embedding = SomeEmbedding(6);
    embedding.version = version;
    embedding.items_version = items_version;
    return std::make_shared<const Retriever>(collection.parameters, collection.anchors.labels,
                                             embedding);
  };
  CollectionRegistry registry;
  const auto entry = registry.Add(collection);
  ASSERT_TRUE(registry.InstallRetriever(entry.get(), retriever(1, 10), {}));
  const CollectionView before = registry.ViewOf(*entry);
  registry.RecordItems(*before.published, 6, 10);
  ASSERT_THAT(registry.BeginBuild("fruit"), IsOk());
  ASSERT_TRUE(registry.BeginCells(entry.get()).has_value());
  // Versions 11: deleted, 12: inserted again, 13: this one deleted; read together.
  registry.AdoptDeletions({.entry = entry, .retriever = before.retriever}, 13,
                          {{{"item-001", 11}, {"item-002", 13}}});
  EXPECT_EQ(registry.ViewOf(*entry).hidden->count, 2);
  ASSERT_TRUE(registry.InstallRetriever(entry.get(), retriever(2, 12), {}));
  Gallery gallery = GalleryOf(MakeItems(6, 1));
  gallery.version = 12;
  registry.InstallCells(
      entry.get(), CellIndex::Create(collection.parameters, collection.anchors, gallery, {false}));
  const CollectionView view = registry.ViewOf(*entry);
  const std::vector<bool> deleted = {false, false, true, false, false, false};
  EXPECT_EQ(view.hidden->hidden, deleted);
  EXPECT_EQ(view.hidden_in_cells->hidden, deleted);
}

// Another daemon's deletion may be known only from its later embedding.
TEST(CollectionRegistry, LaterEmbeddingHidesItsMissingItemsInCells) {
  const StoredCollection collection = CollectionOfTwoCells();
  Gallery gallery = GalleryOf(MakeItems(6, 1));
  gallery.version = 6;
  const auto cells = CellIndex::Create(collection.parameters, collection.anchors, gallery, {false});
  for (const auto& [items_version, missing] : {std::pair{6U, 0}, {5U, 0}, {7U, 2}}) {
    CollectionRegistry registry;
    const auto entry = registry.Add(collection);
    // Named, because clang 14 captures no structured binding.
    const auto install = [&, items_version = items_version](int items, uint64_t version) {
      Embedding embedding = SomeEmbedding(items);
      embedding.version = version;
      embedding.items_version = version == 1 ? 6 : items_version;
      ASSERT_TRUE(registry.InstallRetriever(
          entry.get(),
          std::make_shared<const Retriever>(collection.parameters, collection.anchors.labels,
                                            embedding),
          {}));
    };
    install(6, 1);
    registry.InstallCells(entry.get(), cells);
    EXPECT_EQ(registry.ViewOf(*entry).hidden_in_cells, nullptr);
    install(4, 2);
    const auto hidden = registry.ViewOf(*entry).hidden_in_cells;
    EXPECT_EQ(hidden == nullptr ? 0 : hidden->count, missing) << items_version;
  }
}

}  // namespace
}  // namespace privatemail::testing
