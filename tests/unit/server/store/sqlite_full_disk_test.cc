// A SQLite store that is opened on a full disk, simulated by a limit of file sizes.
#include <filesystem>
#include <fstream>
#include <memory>

#include "common/base/operator_only_error.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/testing/full_disk.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using ::testing::SizeIs;

// A directory as a kill leaves it, with 300 items, of which the last 100 are only in the log.
class FullDiskAtStart : public ::testing::TestWithParam<rlim_t> {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(const auto store, SqliteStore::Open(running_.path()));
    ASSERT_THAT(store->Create(fruit_), IsOk());
    ASSERT_THAT(store->Upsert(fruit_.parameters, absl::MakeConstSpan(items_).first(200)), IsOk());
    ASSERT_THAT(store->SaveEmbedding(fruit_.parameters, SomeEmbedding(200)), IsOk());
    ASSERT_THAT(store->Upsert(fruit_.parameters, items_), IsOk());
    for (const char* suffix : {"", "-wal", "-shm", "-mark"}) {
      const std::string name = std::string("privatemail.sqlite") + suffix;
      std::filesystem::copy_file(running_ / name, folder_ / name);
    }
  }

  std::string Log() const { return Contents(file_ + "-wal") + Contents(file_ + "-mark"); }

  static std::vector<Item> LargeItems() {
    std::vector<Item> items = MakeItems(300, 1);
    for (Item& item : items) item.payload = '"' + std::string(500, item.id.back()) + '"';
    return items;
  }

  void ExpectAllIsRead(SqliteStore* store) const {
    ASSERT_OK_AND_ASSIGN(const auto collections, store->LoadCollections());
    ASSERT_THAT(collections, SizeIs(1));
    EXPECT_EQ(collections[0].items, items_.size());
    ASSERT_OK_AND_ASSIGN(const Gallery gallery, store->LoadGallery(fruit_.parameters));
    EXPECT_EQ(gallery.ids.size(), items_.size());
    EXPECT_EQ(gallery.payloads.back(), items_.back().payload);
    ASSERT_OK_AND_ASSIGN(const auto items, store->GetItems(fruit_.parameters, {"item-299"}));
    ASSERT_THAT(items, SizeIs(1));
    EXPECT_EQ(items[0].features, items_.back().features);
    ASSERT_OK_AND_ASSIGN(const auto embedding, store->LoadEmbedding(fruit_.parameters));
    ASSERT_TRUE(embedding.has_value());
    EXPECT_EQ(embedding->ids.size(), 200u);
  }

  void ExpectWritesAreRefused(SqliteStore* store) const {
    const auto refused = FailsWith(
        kExhausted,
        "the store is read-only until there is space: no space left for database file " + file_);
    const PublicParameters& fruit = fruit_.parameters;
    EXPECT_THAT(store->Upsert(fruit, MakeItems(1, 7)), refused);
    EXPECT_TRUE(IsOperatorOnlyError(store->Upsert(fruit, MakeItems(1, 7)).status()));
    EXPECT_THAT(store->DeleteItems(fruit, {"item-001"}), refused);
    EXPECT_THAT(store->SaveEmbedding(fruit, SomeEmbedding(3)), refused);
    EXPECT_THAT(store->Create(SmallCollection("fish")), refused);
    EXPECT_THAT(Import(store, SmallCollection("fish"), GalleryOf(MakeItems(2, 1))), refused);
    EXPECT_THAT(store->Delete(fruit.collection_uuid), refused);
  }

  const TemporaryFolder running_;
  const TemporaryFolder folder_;
  const std::string file_ = folder_ / "privatemail.sqlite";
  const StoredCollection fruit_ = SmallCollection("fruit");
  const std::vector<Item> items_ = LargeItems();
};

TEST_P(FullDiskAtStart, StoreIsReadOnlyUntilThereIsSpace) {
  const std::string before = Log();
  std::unique_ptr<SqliteStore> store;
  {
    const FullDisk full(GetParam());
    ASSERT_OK_AND_ASSIGN(store, SqliteStore::Open(folder_.path()));
    EXPECT_TRUE(store->read_only());
    ExpectAllIsRead(store.get());
    ExpectWritesAreRefused(store.get());
    EXPECT_THAT(store->TryWritable(), FailsWith(kExhausted, "no space left for database file"));
    EXPECT_TRUE(store->read_only());
    ExpectAllIsRead(store.get());
  }
  EXPECT_TRUE(Log() == before) << "the log was changed";
  EXPECT_THAT(store->TryWritable(), IsOk());
  EXPECT_FALSE(store->read_only());
  EXPECT_THAT(store->TryWritable(), IsOk());
  ExpectAllIsRead(store.get());
  EXPECT_THAT(store->DeleteItems(fruit_.parameters, {"item-001"}), IsOk());
  store.reset();
  ASSERT_OK_AND_ASSIGN(store, SqliteStore::Open(folder_.path()));
  EXPECT_EQ((*store->LoadCollections())[0].items, items_.size() - 1);
}

// Also when there is space again, which it has not noticed.
TEST_P(FullDiskAtStart, EndOfAReadOnlyStoreLosesNothing) {
  const std::string before = Log();
  for (const bool space_at_end : {false, true}) {
    auto full = std::make_unique<FullDisk>(GetParam());
    ASSERT_OK_AND_ASSIGN(auto store, SqliteStore::Open(folder_.path()));
    EXPECT_TRUE(store->read_only());
    if (space_at_end) full.reset();
    store.reset();
    EXPECT_TRUE(Log() == before) << "the log was changed";
  }
  ASSERT_OK_AND_ASSIGN(const auto store, SqliteStore::Open(folder_.path()));
  EXPECT_FALSE(store->read_only());
  ExpectAllIsRead(store.get());
}

TEST_P(FullDiskAtStart, DamageIsNotServed) {
  std::string log = Contents(file_ + "-wal");
  log[log.size() / 2] = static_cast<char>(log[log.size() / 2] ^ 1);
  std::ofstream(file_ + "-wal", std::ios::binary) << log;
  const FullDisk full(GetParam());
  EXPECT_THAT(SqliteStore::Open(folder_.path()), FailsWith(kDataLoss, file_ + "-wal is damaged"));
}

// A file without space for -shm, and one to whose file the log cannot be moved.
INSTANTIATE_TEST_SUITE_P(Limits, FullDiskAtStart, ::testing::Values(4096, 40'000));

TEST(FullDiskAtFirstStart, NeedsSpace) {
  const TemporaryFolder folder;
  const FullDisk full(4096);
  EXPECT_THAT(SqliteStore::Open(folder.path()), FailsWith(kExhausted, "no space left"));
}

// Otherwise nobody could free space.
TEST(FullDiskInUse, LargeCollectionIsDeletedWithinFewPages) {
  constexpr int kBulk = 20'000;
  const TemporaryFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto store, SqliteStore::Open(folder.path()));
  const StoredCollection bulk = SmallCollection("bulk"), fruit = SmallCollection("fruit");
  for (const StoredCollection& one : {bulk, fruit}) ASSERT_THAT(store->Create(one), IsOk());
  std::vector<Item> items = MakeItems(kBulk, 1);
  for (int i = 0; i < kBulk; ++i) items[i].id = std::to_string(i * 7919 % kBulk);  // not in order
  ASSERT_THAT(store->Upsert(bulk.parameters, items), IsOk());
  const auto used = [&] { return std::filesystem::file_size(folder / "privatemail.sqlite-wal"); };
  {
    const FullDisk full(
        std::max(used(), std::filesystem::file_size(folder / "privatemail.sqlite")) + 65536);
    absl::Status status;
    for (unsigned i = 0; status.ok(); ++i) {
      status = store->Upsert(fruit.parameters, MakeItems(300, i)).status();
    }
    EXPECT_THAT(status, FailsWith(kExhausted, "no space left for database file"));
  }
  const FullDisk nearly(
      std::max(used(), std::filesystem::file_size(folder / "privatemail.sqlite")) + 65536);
  ASSERT_OK_AND_ASSIGN(const uint64_t deleted, store->Delete(bulk.parameters.collection_uuid));
  EXPECT_EQ(deleted, static_cast<uint64_t>(kBulk));
  EXPECT_THAT(*store->LoadCollections(), SizeIs(1));
}

}  // namespace
}  // namespace privatemail::testing
