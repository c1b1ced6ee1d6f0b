#include "tests/unit/server/engine/catalog_fixture.h"

namespace privatemail::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class CatalogDeletions : public CatalogTest {};

TEST_F(CatalogDeletions, DeletedItemIsHiddenAtOnceAndAfterRestart) {
  const CollectionView view = CreateFruit(4);
  ASSERT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  DeleteItems({"item-001", "none", "item-001"});
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
  ASSERT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  EXPECT_THAT(Findable(), ElementsAre("item-000", "item-001", "item-002"));
}

TEST_F(CatalogDeletions, ItemDeletedDuringBuildIsHidden) {
  CreateFruit(6);
  for (const bool first_build : {true, false}) {
    const std::string id = first_build ? "item-001" : "item-002";
    ASSERT_THAT(catalog_->Build("fruit",
                                [&](int done, int) {
                                  if (done == 2) DeleteItems({id});
                                  return absl::OkStatus();
                                }),
                IsOk());
    EXPECT_THAT(Findable(), Not(Contains(id)));
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

TEST_F(CatalogDeletions, ItemReinsertedBeforeGalleryIsReadIsFound) {
  const CollectionView view = CreateFruit(3);
  ASSERT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  // Deleted and inserted again before the build reads the gallery.
  ASSERT_THAT(catalog_->Build("fruit",
                              [&](int done, int) {
                                if (done != 0) return absl::OkStatus();
                                DeleteItems({"item-001"});
                                return catalog_->Upsert(view, MakeItems(3, 1)).status();
                              }),
              IsOk());
  EXPECT_THAT(Findable(), ElementsAre("item-000", "item-001", "item-002"));
}

}  // namespace
}  // namespace privatemail::testing
