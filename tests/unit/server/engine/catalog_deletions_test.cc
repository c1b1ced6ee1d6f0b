#include "tests/unit/server/engine/catalog_fixture.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;

class CatalogDeletions : public CatalogTest {};

TEST_F(CatalogDeletions, DeletedItemIsHiddenAtOnceAndAfterRestart) {
  const CollectionView view = CreateFruit(4);
  ASSERT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  DeleteItems({"item-001", "item-0015", "none", "item-001"});
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
  // Another one is inserted again just before the build reads the gallery.
  const auto insert_again = [&](int done, int) {
    return done == 0 ? catalog_->Upsert(view, {{MakeItem("item-003", 3, 4)}}).status()
                     : absl::OkStatus();
  };
  ASSERT_THAT(catalog_->Build("fruit", insert_again), IsOk());
  EXPECT_THAT(Findable(), ElementsAre("item-000", "item-001", "item-002", "item-003"));
}

TEST_F(CatalogDeletions, ItemDeletedDuringBuildIsHidden) {
  CreateFruit(6);
  for (const std::string id : {"item-001", "item-002"}) {
    const auto delete_it = [&](int done, int) {
      if (done == 2) DeleteItems({id});
      return absl::OkStatus();
    };
    ASSERT_THAT(catalog_->Build("fruit", delete_it), IsOk());
    EXPECT_THAT(Findable(), ::testing::Not(::testing::Contains(id)));
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

}  // namespace
}  // namespace privatemail::testing
