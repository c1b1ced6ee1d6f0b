// Collections without anchors, and anchors without labels, in the catalog.

#include "common/embedding/default_settings.h"
#include "common/items/item_checks.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/engine/catalog_fixture.h"
#include "tests/unit/server/snapshots.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class CatalogDimension : public CatalogTest {
 protected:
  CollectionView Now() const { return *catalog_->Find("notes"); }
  int64_t Dimension() const { return Now().published->parameters.feature_dim; }

  UpsertResult Upsert(const CollectionView& view, const std::vector<Item>& items) {
    const absl::StatusOr<UpsertResult> result = catalog_->Upsert(view, items);
    EXPECT_THAT(result, IsOk());
    return result.value_or(UpsertResult());
  }

  const CollectionView notes_ = *catalog_->Create(Notes(Metric::kEuclidean));
};

TEST_F(CatalogDimension, FirstValidItemFixesItDurably) {
  EXPECT_TRUE(notes_.published->parameters.with_encrypted);
  EXPECT_EQ(notes_.published->parameters.metric, Metric::kEuclidean);
  const UpsertResult malformed = Upsert(
      notes_,
      {Row("none", {}), Row("wide", std::vector<float>(16385, 1)), Row("nan", {1, std::nanf("")})});
  ASSERT_THAT(malformed.rejected, SizeIs(3));
  EXPECT_EQ(malformed.rejected[1].reason,
            "number of features must be between 1 and 16384, but is 16385");
  EXPECT_EQ(Dimension(), 0);
  const UpsertResult result =
      Upsert(notes_, {Row("", {1, 2}), Row("nan", {1, std::nanf(""), 1, 1}), Row("none", {}),
                      Row("a", {1, 2, 3}), Row("b", {1, 2}), Row("c", {3, 2, 1})});
  EXPECT_EQ(result.inserted, 2u);
  ASSERT_THAT(result.rejected, SizeIs(4));
  EXPECT_THAT(result.rejected[3].reason,
              ::testing::HasSubstr("features has the wrong dimension: expected 3, got 2"));
  EXPECT_EQ(Dimension(), 3);
  EXPECT_NE(Now().published->fingerprint, notes_.published->fingerprint);
  EXPECT_EQ(Now().published->fingerprint, Fingerprint(Now().published->parameters));
  EXPECT_EQ(Now().items, 2u);
  EXPECT_EQ(Now().changes_since_embedding(), 0u) << "searches reflect what is stored";
  // The view of an upload that began before.
  EXPECT_THAT(Upsert(notes_, {Row("d", {1, 2})}).rejected, SizeIs(1));
  const std::string fingerprint = Now().published->fingerprint;
  Reopen();
  EXPECT_EQ(Dimension(), 3);
  EXPECT_EQ(Now().published->fingerprint, fingerprint);
}

TEST_F(CatalogDimension, SnapshotsKeepFingerprintAndMissingLabels) {
  const std::string empty = SnapshotOf(*catalog_, notes_);
  Item labelled = Row("b", {3, 2, 1, 1});
  labelled.label = 7;
  Upsert(notes_, {Row("a", {1, 2, 3, 4}), labelled});
  const CollectionView filled = Now();
  const std::string bytes = SnapshotOf(*catalog_, filled);
  for (const std::string& snapshot : {empty, bytes}) {
    ASSERT_THAT(catalog_->Delete("notes"), IsOk());
    ASSERT_OK_AND_ASSIGN(const SnapshotContents contents, Parse(snapshot));
    ASSERT_THAT(Restore(catalog_.get(), contents), IsOk());
    const CollectionView& before = snapshot == empty ? notes_ : filled;
    EXPECT_EQ(Now().published->fingerprint, before.published->fingerprint);
  }
  EXPECT_THAT(LoadGallery(*catalog_, Now()).labels, ElementsAre(kNoLabel, 7));
  ASSERT_OK_AND_ASSIGN(SnapshotContents wrong, Parse(bytes));
  wrong.collection.parameters.anchor_digest = std::string(32, 'x');
  wrong.collection.name = "wrong";
  EXPECT_THAT(Restore(catalog_.get(), wrong), FailsWith(kDataLoss, "not those of its anchors"));
}

class CatalogUnlabelledAnchors : public CatalogTest {
 protected:
  static NewCollection Shapes() {
    NewCollection shapes{.name = "shapes",
                         .settings = DefaultSettings({}),
                         .anchors = SmallAnchors(),
                         .class_names = {},
                         .extractor = "vectors",
                         .cells = {3},
                         .cell_code = CellCode::kScalar8};
    shapes.anchors.labels.clear();
    return shapes;
  }
};

TEST_F(CatalogUnlabelledAnchors, BuildPreparesCellsOfItemsWithAndWithoutLabels) {
  ASSERT_OK_AND_ASSIGN(const CollectionView shapes, catalog_->Create(Shapes()));
  std::vector<Item> items = MakeItems(30, 1);
  for (size_t i = 0; i < items.size(); i += 2) items[i].label = kNoLabel;
  ASSERT_THAT(catalog_->Upsert(shapes, items), IsOk());
  ASSERT_THAT(catalog_->Build("shapes", nullptr, 1 << 30, Catalog::LabelCheck::kOn), IsOk());
  ASSERT_TRUE(WaitUntil([&] { return catalog_->Find("shapes")->cells != nullptr; }));
  const CollectionView built = *catalog_->Find("shapes");
  ASSERT_EQ(built.cells->items(), 30);
  EXPECT_EQ(built.cells->LabelOf(0), kNoLabel);
  EXPECT_EQ(built.cells->LabelOf(1), items[1].label);
  Reopen();  // reads the stored embedding and cells
  ASSERT_TRUE(WaitUntil([&] { return catalog_->Find("shapes")->cells != nullptr; }));
  EXPECT_EQ(catalog_->Find("shapes")->cells->LabelOf(0), kNoLabel);
}

TEST_F(CatalogUnlabelledAnchors, NeedCellsOrEncryptedSearches) {
  NewCollection shapes = Shapes();
  shapes.cells.clear();
  shapes.cell_code.reset();
  EXPECT_THAT(catalog_->Create(shapes), FailsWith(kInvalid, "it would offer no scheme"));
  shapes.with_encrypted = true;
  EXPECT_THAT(catalog_->Create(shapes), IsOk());
}

}  // namespace
}  // namespace privatemail::testing
