#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/sqlite/sqlite.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/unit/server/engine/orphan_rows.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

constexpr int kMany = 20'000;

class SqliteDelete : public ::testing::Test {
 protected:
  void SetUp() override {
    Open();
    // More rows of each table than one transaction deletes.
    const Gallery gallery = ManyItems(kMany, "{}");
    ASSERT_THAT(Import(store_.get(), fruit_, gallery), IsOk());
    Embedding embedding = EmbeddingOf(gallery);
    embedding.items_version = kMany;
    ASSERT_THAT(store_->SaveEmbedding(fruit_.parameters, embedding), IsOk());
    const std::vector<std::string> some(gallery.ids.begin(), gallery.ids.begin() + 3000);
    ASSERT_THAT(store_->DeleteItems(fruit_.parameters, some), IsOk());
    ASSERT_THAT(store_->Create(fish_), IsOk());
    ASSERT_THAT(store_->Upsert(fish_.parameters, MakeItems(7, 1)), IsOk());
    ASSERT_THAT(store_->SaveEmbedding(fish_.parameters, SomeEmbedding(7)), IsOk());
  }

  void Open() {
    store_.reset();
    ASSERT_OK_AND_ASSIGN(auto store, SqliteStore::Open(directory_.path()));
    store_ = std::move(store);
  }

  void ExpectFishWhole(Store* store) const {
    EXPECT_EQ(store->LoadGallery(fish_.parameters)->ids.size(), 7u);
    EXPECT_EQ((*store->LoadEmbedding(fish_.parameters))->ids.size(), 7u);
  }

  static constexpr uint64_t kLeft = kMany - 3000;
  const TemporaryFolder directory_;
  const StoredCollection fruit_ = SmallCollection("fruit");
  const StoredCollection fish_ = SmallCollection("fish");
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(SqliteDelete, RunsInPartsBetweenOtherWrites) {
  std::atomic<bool> ended = false;
  std::thread deleter([&] {
    const auto deleted = store_->Delete(fruit_.parameters.collection_uuid);
    ended = true;
    ASSERT_THAT(deleted, IsOk());
    EXPECT_EQ(*deleted, kLeft);
  });
  std::set<int64_t> left;
  unsigned writes = 0;
  while (!ended) {
    EXPECT_THAT(store_->Upsert(fish_.parameters, {{MakeItem("item-000", 3, 2 + writes++)}}),
                IsOk());
    const int64_t rows = CountOrphanRows(directory_.path());
    EXPECT_GE(rows, 0);
    if (rows <= 0) continue;
    left.insert(rows);
    EXPECT_THAT(store_->LoadCollection(fruit_.parameters.collection_uuid), FailsWith(kNotFound));
  }
  deleter.join();
  // The deletion takes about forty transactions.
  EXPECT_GE(left.size(), 5u) << writes << " writes";
  EXPECT_EQ(CountOrphanRows(directory_.path()), 0);
  EXPECT_EQ(store_->ListStates()->size(), 1u);
  ExpectFishWhole(store_.get());
  EXPECT_THAT(store_->Delete(fruit_.parameters.collection_uuid), FailsWith(kNotFound));
}

TEST_F(SqliteDelete, NameAndUuidAreFreeAtOnce) {
  ASSERT_THAT(store_->Delete(fruit_.parameters.collection_uuid), IsOk());
  ASSERT_THAT(Import(store_.get(), fruit_, GalleryOf(MakeItems(5, 1))), IsOk());
  EXPECT_EQ(store_->LoadGallery(fruit_.parameters)->ids.size(), 5u);
  EXPECT_EQ(*store_->LoadEmbedding(fruit_.parameters), std::nullopt);
}

// A deletion may end after any table.
TEST_F(SqliteDelete, InterruptedDeleteIsCompletedByNextStart) {
  for (const LargeTable& kept : {kItems, kDeletions, kEmbeddedItems}) {
    SCOPED_TRACE(kept.name);
    const TemporaryFolder folder;
    store_.reset();
    std::filesystem::copy(directory_.path(), folder / "data");
    {
      ASSERT_OK_AND_ASSIGN(const auto file,
                           sqlite::Database::Open(folder / "data/privatemail.sqlite"));
      ASSERT_THAT(file->Execute("DELETE FROM collections WHERE name = 'fruit'"), IsOk());
      ASSERT_THAT(file->Execute("DELETE FROM embeddings WHERE collection NOT IN (SELECT key "
                                "FROM collections)"),
                  IsOk());
      for (const LargeTable& table : {kItems, kDeletions, kEmbeddedItems}) {
        if (table.name == kept.name) continue;
        ASSERT_THAT(file->Execute(absl::StrCat("DELETE FROM ", table.name, " WHERE ", table.key,
                                               " NOT IN (SELECT key FROM ", table.parent, ")")),
                    IsOk());
      }
    }
    ASSERT_GT(CountOrphanRows(folder / "data"), 0);
    ASSERT_OK_AND_ASSIGN(auto store, SqliteStore::Open(folder / "data"));
    EXPECT_EQ(CountOrphanRows(folder / "data"), 0);
    ExpectFishWhole(store.get());
  }
}

}  // namespace
}  // namespace privatemail::testing
