// A fixture: a catalog over a temporary directory.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_ENGINE_CATALOG_FIXTURE_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_ENGINE_CATALOG_FIXTURE_H_

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/items/item_checks.h"
#include "server/engine/catalog.h"
#include "tests/unit/server/engine/store_with_hooks.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {

class CatalogTest : public ::testing::Test {
 protected:
  CatalogTest() { Reopen(); }

  void Reopen() {
    catalog_.reset();  // it holds the directory
    Open(*SqliteStore::Open(directory_.path()));
  }

  // Reopens over a store with hooks.
  void ReopenWith(const StoreHooks* hooks) {
    catalog_.reset();
    Open(std::make_unique<StoreWithHooks>(*SqliteStore::Open(directory_.path()), hooks));
  }

  static NewCollection Fruit() { return {"fruit", SmallSettings(), SmallAnchors(), {}, "vectors"}; }

  // A collection without anchors.
  static NewCollection Notes(Metric metric = Metric::kCosine) {
    return {.name = "notes",
            .settings = {},
            .anchors = {},
            .class_names = {},
            .extractor = "vectors",
            .metric = metric};
  }
  static Item Row(const std::string& id, std::vector<float> features) {
    return {id, kNoLabel, std::move(features), "", 0};
  }

  CollectionView CreateFruit(int items, const std::string& name = "fruit") {
    NewCollection fruit = Fruit();
    fruit.name = name;
    auto view = catalog_->Create(fruit);
    EXPECT_THAT(view, IsOk());
    EXPECT_THAT(catalog_->Upsert(*view, MakeItems(items, 1)), IsOk());
    return *view;
  }

  static RetrievalQuery SomeQuery() { return {Matrix::Random(15, 2), 3, 3, nullptr}; }

  // All ids that a search finds, ascending.
  std::vector<std::string> Findable() const {
    const auto view = catalog_->Find("fruit");
    RetrievalQuery query = SomeQuery();
    query.k = 100;
    query.hidden = view->hidden;
    const auto answer = view->retriever->Retrieve(query);
    EXPECT_THAT(answer, IsOk());
    std::vector<std::string> ids;
    for (const Neighbor& neighbor : answer->slots[0]) {
      ids.push_back(view->retriever->IdOf(neighbor.row));
    }
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(view->embedded_items(), ids.size());
    return ids;
  }

  void DeleteItems(const std::vector<std::string>& ids) {
    const auto view = catalog_->Find("fruit");
    EXPECT_THAT(catalog_->DeleteItems(*view, ids), IsOk());
  }

  void Open(std::unique_ptr<Store> store) {
    ASSERT_OK_AND_ASSIGN(catalog_, Catalog::Open(std::move(store), directory_.path()));
  }

  const TemporaryFolder directory_;
  std::unique_ptr<Catalog> catalog_;
};

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_ENGINE_CATALOG_FIXTURE_H_
