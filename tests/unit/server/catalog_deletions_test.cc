// A deleted item is in no answer, on whichever side of a build it was deleted.
#include <functional>
#include <memory>
#include <utility>

#include "tests/unit/server/catalog_fixture.h"

namespace privatemail::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

class CatalogDeletions : public CatalogTest {};

TEST_F(CatalogDeletions, ADeletedItemIsNotFoundAnyMoreAlsoAfterARestart) {
  const CollectionView view = CreateBirds(4);
  ASSERT_THAT(catalog_->Build("birds", nullptr), IsOk());
  DeleteItems({"item-001", "none", "item-001"});
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_THAT(Findable(), ElementsAre("item-000", "item-002", "item-003"));
    EXPECT_EQ(catalog_->Find("birds")->items, 3u);
    Reopen();
  }
  DeleteItems({"item-003"});
  EXPECT_THAT(Findable(), ElementsAre("item-000", "item-002"));
  // Back under its id, but what is embedded is still the one that was deleted.
  ASSERT_THAT(catalog_->Upsert(view, std::vector<Item>{MakeItem("item-001", 9, 5)}), IsOk());
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_THAT(Findable(), ElementsAre("item-000", "item-002"));
    Reopen();
  }
  ASSERT_THAT(catalog_->Build("birds", nullptr), IsOk());
  EXPECT_THAT(Findable(), ElementsAre("item-000", "item-001", "item-002"));
}

TEST_F(CatalogDeletions, AnItemThatIsDeletedDuringABuildIsNotInItsResult) {
  CreateBirds(6);
  for (const bool first_build : {true, false}) {
    const std::string id = first_build ? "item-001" : "item-002";
    ASSERT_THAT(catalog_->Build("birds",
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

// A store that does something else right after it was asked what was deleted since an embedding.
class StoreWithAHook final : public Store {
 public:
  StoreWithAHook(std::unique_ptr<Store> store, std::function<void()>* hook)
      : store_(std::move(store)), hook_(hook) {}

  absl::StatusOr<std::optional<std::vector<std::string>>> DeletedSince(const PublicParameters& p,
                                                                       uint64_t version,
                                                                       uint64_t after) override {
    auto deleted = store_->DeletedSince(p, version, after);
    (*hook_)();
    return deleted;
  }

  absl::StatusOr<std::vector<StoredCollection>> LoadCollections() override {
    return store_->LoadCollections();
  }
  absl::StatusOr<StoredCollection> LoadCollection(absl::string_view uuid) override {
    return store_->LoadCollection(uuid);
  }
  absl::StatusOr<std::vector<CollectionState>> ListStates() override {
    return store_->ListStates();
  }
  absl::Status Create(const StoredCollection& c) override { return store_->Create(c); }
  absl::Status ImportParts(const StoredCollection& c, GallerySource source) override {
    return store_->Import(c, source);
  }
  absl::StatusOr<uint64_t> Delete(absl::string_view uuid) override { return store_->Delete(uuid); }
  absl::StatusOr<UpsertResult> Upsert(const PublicParameters& p,
                                      absl::Span<const Item> items) override {
    return store_->Upsert(p, items);
  }
  absl::StatusOr<DeleteResult> DeleteItems(const PublicParameters& p,
                                           absl::Span<const std::string> ids) override {
    return store_->DeleteItems(p, ids);
  }
  absl::StatusOr<std::vector<Item>> GetItems(const PublicParameters& p,
                                             absl::Span<const std::string> ids) override {
    return store_->GetItems(p, ids);
  }
  absl::Status ReadGallery(const PublicParameters& p, GalleryVisitor visit) override {
    return store_->ReadGallery(p, visit);
  }
  absl::StatusOr<uint64_t> SaveEmbedding(const PublicParameters& p,
                                         const Embedding& embedding) override {
    return store_->SaveEmbedding(p, embedding);
  }
  absl::StatusOr<std::optional<Embedding>> LoadEmbedding(const PublicParameters& p) override {
    return store_->LoadEmbedding(p);
  }
  absl::StatusOr<ChangesSinceEmbedding> CountChanges(const PublicParameters& p) override {
    return store_->CountChanges(p);
  }
  std::unique_ptr<ChangeWatch> Watch(std::function<absl::Status()> changed,
                                     std::function<void(const absl::Status&)> report) override {
    return store_->Watch(std::move(changed), std::move(report));
  }

 protected:
  absl::Status ScanItems(const PublicParameters&, absl::string_view, int64_t, bool,
                         absl::FunctionRef<bool(Item)>) override {
    return absl::UnimplementedError("not asked for");
  }

 private:
  const std::unique_ptr<Store> store_;
  std::function<void()>* const hook_;
};

TEST_F(CatalogDeletions, AnItemThatIsDeletedInTheLastMomentOfABuildIsNotInItsResult) {
  std::function<void()> hook = [] {};
  catalog_.reset();
  catalog_ =
      *Catalog::Open(std::make_unique<StoreWithAHook>(*SqliteStore::Open(directory_.path()), &hook),
                     directory_.path());
  CreateBirds(5);
  // The store has been asked already, and the new embedding does not answer yet.
  hook = [&] { DeleteItems({"item-001"}); };
  ASSERT_THAT(catalog_->Build("birds", nullptr), IsOk());
  hook = [] {};
  EXPECT_THAT(Findable(), ElementsAre("item-000", "item-002", "item-003", "item-004"));
}

TEST_F(CatalogDeletions, AnItemThatWasDeletedBeforeABuildAndCameBackIsInItsResult) {
  const CollectionView view = CreateBirds(3);
  ASSERT_THAT(catalog_->Build("birds", nullptr), IsOk());
  // Deleted and back within the build, but before it reads the gallery.
  ASSERT_THAT(catalog_->Build("birds",
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
