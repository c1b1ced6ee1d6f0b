// Which index answers for a collection.
#include "tests/unit/server/catalog_fixture.h"

namespace privatemail::testing {
namespace {

using ::testing::AnyOf;
using ::testing::StartsWith;

class CatalogIndexTest : public CatalogTest {
 protected:
  std::string Index() const { return catalog_->Find("birds")->retriever->index_description(); }
};

TEST_F(CatalogIndexTest, OptionsAreForEmbeddingsThatAreBuiltOrLoadedFromThenOn) {
  NewCollection birds = Birds();
  birds.settings.embedding_dim = 5;
  const auto view = catalog_->Create(birds);
  ASSERT_THAT(view, IsOk());
  ASSERT_THAT(catalog_->Upsert(*view, MakeItems(10'000, 1)), IsOk());
  ASSERT_THAT(catalog_->Build("birds", nullptr), IsOk());
  EXPECT_EQ(Index(), "exact, scan");
  const IndexOptions ivf = {true, .9};
  catalog_->SetIndexOptions(ivf);
  EXPECT_EQ(Index(), "exact, scan");
  ASSERT_THAT(catalog_->Build("birds", nullptr), IsOk());
  // The former embedding has answered until this one's index was ready.
  EXPECT_THAT(Index(), StartsWith("IVF of 200 lists, "));
  Reopen();
  EXPECT_EQ(Index(), "exact, scan");
  catalog_.reset();
  catalog_ = *Catalog::Open(*SqliteStore::Open(directory_.path()), directory_.path(), nullptr, ivf);
  EXPECT_THAT(Index(), AnyOf("exact, scan; IVF is being made", StartsWith("IVF of 200 lists, ")));
  catalog_->Find("birds")->retriever->AwaitIndex();
  EXPECT_THAT(Index(), StartsWith("IVF of 200 lists, "));
}

}  // namespace
}  // namespace privatemail::testing
