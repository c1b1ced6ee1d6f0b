#include "tests/testing/wait_until.h"
#include "tests/unit/server/engine/catalog_fixture.h"

namespace privatemail::testing {
namespace {

using ::testing::StartsWith;

class CatalogIndexTest : public CatalogTest {
 protected:
  std::string Index() const { return catalog_->Find("fruit")->retriever->index_description(); }

  // As many items as get an approximate index.
  void CreateAndBuild(const std::string& name) {
    NewCollection collection = Fruit();
    collection.name = name;
    collection.settings.embedding_dim = 5;
    collection.settings.kernel_bandwidth = 6;  // wide enough for a polynomial: builds are quick
    ASSERT_OK_AND_ASSIGN(const CollectionView view, catalog_->Create(collection));
    ASSERT_THAT(catalog_->Upsert(view, MakeItems(SearchIndex::kMinApproximateRows, 1)), IsOk());
    ASSERT_THAT(catalog_->Build(name, nullptr), IsOk());
  }

  // Waits until no index is being built.
  std::string FinalIndex() const {
    EXPECT_TRUE(WaitUntil([&] { return Index() != "exact, k-d tree; IVF is being built"; }));
    return Index();
  }
};

TEST_F(CatalogIndexTest, NewOptionsApplyToLaterEmbeddings) {
  CreateAndBuild("fruit");
  EXPECT_EQ(Index(), "exact, k-d tree");
  const CatalogOptions ivf = {.index = {true, .9}};
  catalog_->SetOptions(ivf);
  EXPECT_EQ(Index(), "exact, k-d tree");
  ASSERT_THAT(catalog_->Build("fruit", nullptr), IsOk());
  EXPECT_THAT(FinalIndex(), StartsWith("IVF of 200 lists, "));
  Reopen();
  EXPECT_EQ(Index(), "exact, k-d tree");
  catalog_.reset();
  catalog_ = *Catalog::Open(*SqliteStore::Open(directory_.path()), directory_.path(), nullptr, ivf);
  EXPECT_THAT(FinalIndex(), StartsWith("IVF of 200 lists, "));
}

TEST_F(CatalogIndexTest, DeletedCollectionDoesNotBlockQueue) {
  catalog_->SetOptions({.index = {true, .9}});
  for (const char* name : {"fish", "fruit"}) CreateAndBuild(name);
  ASSERT_THAT(catalog_->Delete("fish"), IsOk());
  EXPECT_THAT(FinalIndex(), StartsWith("IVF of 200 lists, "));
  catalog_.reset();  // also while one is being made
}

}  // namespace
}  // namespace privatemail::testing
