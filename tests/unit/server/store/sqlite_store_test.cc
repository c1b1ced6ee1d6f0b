// SQLite only; store_conformance_test.cc tests the contract of Store.
#include "server/store/sqlite/sqlite_store.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>

#include "absl/strings/str_cat.h"
#include "common/base/operator_only_error.h"
#include "common/sqlite/sqlite.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

// A direct connection to the file.
std::string AskFile(const std::string& directory, const std::string& sql) {
  const auto file = sqlite::Database::Open(directory + "/privatemail.sqlite");
  EXPECT_THAT(file, IsOk());
  return *(*file)->Query(sql);
}

class SqliteFile : public ::testing::Test {
 protected:
  void SetUp() override {
    Reopen();
    ASSERT_THAT(store_->Create(collection_), IsOk());
  }

  void Reopen() {
    store_.reset();  // lets go of the lock first
    ASSERT_OK_AND_ASSIGN(auto store, SqliteStore::Open(directory_.path()));
    store_ = std::move(store);
  }

  UpsertResult Upsert(const std::vector<Item>& items) {
    auto result = store_->Upsert(collection_.parameters, items);
    EXPECT_THAT(result, IsOk());
    return *result;
  }

  const TemporaryFolder directory_;
  const StoredCollection collection_ = SmallCollection("fruit");
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(SqliteFile, SecondDaemonIsRefusedWithPid) {
  EXPECT_THAT(SqliteStore::Open(directory_.path()),
              FailsWith(kFailedPrecondition,
                        absl::StrCat("data directory ", directory_.path(),
                                     " is locked by another daemon (pid ", ::getpid(), ")")));
  Reopen();
}

TEST_F(SqliteFile, AnotherVersionIsRefused) {
  store_.reset();
  AskFile(directory_.path(), "PRAGMA user_version = 2");
  EXPECT_THAT(SqliteStore::Open(directory_.path()),
              FailsWith(kFailedPrecondition, "has schema version 2, this program knows version 1"));
}

TEST_F(SqliteFile, WrongAnchorsAndFeaturesReturnDataLoss) {
  Upsert(MakeItems(2, 1));
  store_.reset();
  AskFile(directory_.path(), "UPDATE items SET features = zeroblob(12) WHERE id = 'item-001'");
  AskFile(directory_.path(), "UPDATE collections SET anchor_features = zeroblob(192)");
  Reopen();
  EXPECT_THAT(store_->LoadCollections(),
              FailsWith(kDataLoss, "the anchors do not match their digest"));
  const absl::Status read = store_->LoadGallery(collection_.parameters).status();
  EXPECT_THAT(read, FailsWith(kDataLoss, "features of item item-001: expected 1 x 4 values"));
  EXPECT_TRUE(IsOperatorOnlyError(read)) << "it names the file";
}

// Every page has a checksum: checksum_vfs_test.cc.
TEST_F(SqliteFile, DamagedOrEmptyFileReturnsDataLoss) {
  Upsert(MakeItems(200, 1));
  Reopen();  // checkpoints the log
  const std::string file = directory_ / "privatemail.sqlite";
  const auto size = std::filesystem::file_size(file);
  std::fstream pages(file, std::ios::binary | std::ios::in | std::ios::out);
  for (uintmax_t page = 8192; page < size; page += 4096) {
    pages.seekp(static_cast<std::streamoff>(page) + 4000).write("????", 4);
  }
  pages.close();
  const absl::Status read = store_->LoadGallery(collection_.parameters).status();
  EXPECT_THAT(read, FailsWith(kDataLoss, file));
  EXPECT_TRUE(IsOperatorOnlyError(read));
  store_.reset();
  for (const std::string& foreign : {std::string(), std::string(size, 'x')}) {
    std::ofstream(file, std::ios::binary) << foreign;
    EXPECT_THAT(SqliteStore::Open(directory_.path()), FailsWith(kDataLoss, file));
  }
}

TEST(StoreDirectory, IsReadableByOwnerOnlyAndErrorsNameTheReason) {
  const TemporaryFolder parent;
  for (const std::string name : {"a/b", "c/"}) {
    ASSERT_THAT(SqliteStore::Open(parent / name), IsOk());
    EXPECT_EQ(ModeOf(parent / name), 0700u) << name;
  }
  EXPECT_THAT(SqliteStore::Open("/proc/nowhere/data"),
              FailsWith(kFailedPrecondition, "cannot create directory /proc/"));
  EXPECT_THAT(SqliteStore::Open(""), FailsWith(kFailedPrecondition, "empty"));
}

// Cells of large collections take seconds to read.
TEST_F(SqliteFile, ItemsAreWrittenWhileCellsAreRead) {
  Upsert(MakeItems(3, 1));
  ASSERT_THAT(store_->SaveEmbedding(collection_.parameters, SomeEmbedding(3)), IsOk());
  const EmbeddingVersion of{1, static_cast<int64_t>(SomeEmbedding(3).items_version)};
  ASSERT_THAT(store_->SaveCells(collection_.parameters, of, "image"), IsOk());
  std::future<absl::StatusOr<UpsertResult>> write;
  ASSERT_OK_AND_ASSIGN(
      const auto cells, store_->LoadCells(collection_.parameters, of, [&](int64_t /*bytes*/) {
        write = std::async(std::launch::async, [&] {
          return store_->Upsert(collection_.parameters, {{MakeItem("new", 3, 1)}});
        });
        EXPECT_EQ(write.wait_for(std::chrono::minutes(1)), std::future_status::ready);
        return absl::OkStatus();
      }));
  EXPECT_EQ(cells->image, "image");
  EXPECT_EQ(write.get()->inserted, 1u);
}

}  // namespace
}  // namespace privatemail::testing
