// SQLite only; store_conformance_test.cc tests the contract of Store.
#include "server/store/sqlite/sqlite_store.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/files.h"
#include "common/base/operator_only_error.h"
#include "common/sqlite/sqlite.h"
#include "tests/testing/temporary_folder.h"
#include "tests/unit/server/engine/orphan_rows.h"
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
    return store_->Upsert(collection_.parameters, items).value();
  }

  const TemporaryFolder directory_;
  const StoredCollection collection_ = SmallCollection("fruit");
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(SqliteFile, SecondDaemonIsRefused) {
  EXPECT_THAT(SqliteStore::Open(directory_.path()),
              FailsWith(kFailedPrecondition, absl::StrCat("data directory ", directory_.path(),
                                                          " is locked by another daemon")));
  Reopen();
}

// A new database beside what belongs to a former one would hide its items.
TEST_F(SqliteFile, MissingOrLinkedFileIsRefused) {
  Upsert(MakeItems(2, 1));
  store_.reset();
  const std::string file = directory_ / "privatemail.sqlite", elsewhere = directory_ / "moved";
  std::filesystem::rename(file, elsewhere);
  EXPECT_THAT(SqliteStore::Open(directory_.path()),
              FailsWith(kDataLoss, "privatemail.sqlite is not there, but"));
  EXPECT_FALSE(std::filesystem::exists(file));
  std::filesystem::create_symlink(elsewhere, file);
  EXPECT_THAT(SqliteStore::Open(directory_.path()),
              FailsWith(kFailedPrecondition, "is a symbolic link"));
  std::filesystem::remove(file);
  std::filesystem::rename(elsewhere, file);
  Reopen();
  EXPECT_EQ(store_->LoadGallery(collection_.parameters)->ids.size(), 2u);
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

// Flips a bit of every page that holds the text; the pages of derived rows are known by what the
// test writes into them.
void FlipPagesWith(const std::string& file, const std::string& text) {
  std::string bytes = ReadFileBytes(file).value();
  constexpr size_t kPage = 4096;
  int flipped = 0;
  for (size_t page = 0; page < bytes.size(); page += kPage) {
    const size_t at = bytes.find(text, page);
    if (at == std::string::npos || at >= page + kPage) continue;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    ++flipped;
  }
  ASSERT_GT(flipped, 0) << text;
  std::ofstream(file, std::ios::binary) << bytes;
}

class DamagedDerivedRows : public SqliteFile {
 protected:
  // Items, embedding and cells of a collection; texts of the latter name it.
  void Fill(const StoredCollection& collection) {
    const PublicParameters& parameters = collection.parameters;
    ASSERT_THAT(store_->Upsert(parameters, MakeItems(3, 1)), IsOk());
    Embedding embedding = EmbeddingOf(store_->LoadGallery(parameters).value());
    for (std::string& payload : embedding.payloads) {
      payload = "\"" + std::string(3000, 'e') + collection.name + " embedded\"";
    }
    ASSERT_THAT(Save(collection, embedding), IsOk());
  }
  absl::Status Save(const StoredCollection& collection, const Embedding& embedding) {
    const PublicParameters& parameters = collection.parameters;
    PM_ASSIGN_OR_RETURN(const uint64_t version, store_->SaveEmbedding(parameters, embedding));
    return store_->SaveCells(
        parameters, {static_cast<int64_t>(version), static_cast<int64_t>(embedding.items_version)},
        collection.name + std::string(9000, 'c') + collection.name + " cells");
  }
  std::optional<std::string> Cells(const StoredCollection& collection, int64_t version) {
    const auto cells = store_->LoadCells(collection.parameters, {version, 3},
                                         [](int64_t) { return absl::OkStatus(); });
    if (!cells.ok() || !cells->has_value()) return std::nullopt;
    return (*cells)->image.substr(0, collection.name.size());
  }

  void Damage(const std::string& text) {
    store_.reset();  // moves the log into the file
    FlipPagesWith(directory_ / "privatemail.sqlite", text);
    Reopen();
  }

  const StoredCollection other_ = SmallCollection("other");
};

TEST_F(DamagedDerivedRows, AreReplacedByTheNextBuild) {
  ASSERT_THAT(store_->Create(other_), IsOk());
  for (const std::string text : {"fruit cells", "fruit embedded"}) {
    Fill(collection_);
    Fill(other_);
    Damage(text);
    if (text == "fruit cells") {
      // The other collection keeps its own.
      ASSERT_OK_AND_ASSIGN(const auto others, store_->LoadEmbedding(other_.parameters));
      EXPECT_EQ(others->ids.size(), 3u);
      EXPECT_EQ(Cells(other_, static_cast<int64_t>(others->version)), "other");
    } else {
      const auto before = store_->LoadEmbedding(collection_.parameters);
      EXPECT_FALSE(before.ok() && before->has_value());
    }
    const Embedding embedding = EmbeddingOf(store_->LoadGallery(collection_.parameters).value());
    ASSERT_THAT(Save(collection_, embedding), IsOk());
    Reopen();
    ASSERT_OK_AND_ASSIGN(const auto now, store_->LoadEmbedding(collection_.parameters));
    EXPECT_EQ(now->ids, embedding.ids);
    EXPECT_EQ(Cells(collection_, static_cast<int64_t>(now->version)), "fruit");
  }
}

TEST_F(DamagedDerivedRows, DoNotKeepACollectionFromBeingDeleted) {
  Fill(collection_);
  Damage("fruit cells");
  Damage("fruit embedded");
  EXPECT_THAT(store_->Delete(collection_.parameters.collection_uuid), IsOk());
  Reopen();
  EXPECT_THAT(store_->ListStates().value(), ::testing::IsEmpty());
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

TEST(Uuid, IsRandomVersion4) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto uuid, NewUuid());
    EXPECT_THAT(uuid, ::testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-"
                                              "[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
    seen.insert(uuid);
  }
  EXPECT_EQ(seen.size(), 100u);
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

constexpr int kMany = 20'000;

class SqliteDelete : public ::testing::Test {
 protected:
  void SetUp() override {
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

  void ExpectFishWhole(Store* store) const {
    EXPECT_EQ(store->LoadGallery(fish_.parameters)->ids.size(), 7u);
    EXPECT_EQ((*store->LoadEmbedding(fish_.parameters))->ids.size(), 7u);
  }

  static constexpr uint64_t kLeft = kMany - 3000;
  const TemporaryFolder directory_;
  const StoredCollection fruit_ = SmallCollection("fruit");
  const StoredCollection fish_ = SmallCollection("fish");
  std::unique_ptr<SqliteStore> store_ = SqliteStore::Open(directory_.path()).value();
};

TEST_F(SqliteDelete, RowsAreRemovedInPartsBetweenOtherWrites) {
  ASSERT_OK_AND_ASSIGN(const uint64_t deleted, store_->Delete(fruit_.parameters.collection_uuid));
  EXPECT_EQ(deleted, kLeft);
  EXPECT_THAT(store_->LoadCollection(fruit_.parameters.collection_uuid), FailsWith(kNotFound));
  std::set<int64_t> left = {CountOrphanRows(directory_.path())};
  unsigned writes = 0;
  for (bool more = true; more;) {
    ASSERT_OK_AND_ASSIGN(more, store_->RemoveSomeRows());
    EXPECT_THAT(store_->Upsert(fish_.parameters, {{MakeItem("item-000", 3, 2 + writes++)}}),
                IsOk());
    left.insert(CountOrphanRows(directory_.path()));
  }
  EXPECT_GE(left.size(), 20u);
  EXPECT_EQ(*left.begin(), 0);
  EXPECT_EQ(store_->ListStates()->size(), 1u);
  ExpectFishWhole(store_.get());
  EXPECT_THAT(store_->Delete(fruit_.parameters.collection_uuid), FailsWith(kNotFound));
}

// A deletion may end after any table.
TEST_F(SqliteDelete, InterruptedDeleteIsCompletedByNextStart) {
  for (const LargeTable& kept : {server::kItems, kDeletions, kEmbeddedItems}) {
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
      for (const LargeTable& table : {server::kItems, kDeletions, kEmbeddedItems}) {
        if (table.name == kept.name) continue;
        ASSERT_THAT(file->Execute(absl::StrCat("DELETE FROM ", table.name, " WHERE ", table.key,
                                               " NOT IN (SELECT key FROM ", table.parent, ")")),
                    IsOk());
      }
    }
    ASSERT_GT(CountOrphanRows(folder / "data"), 0);
    ASSERT_OK_AND_ASSIGN(auto store, SqliteStore::Open(folder / "data"));
    EXPECT_THAT(RemoveRows(store.get()), IsOk());
    EXPECT_EQ(CountOrphanRows(folder / "data"), 0);
    ExpectFishWhole(store.get());
  }
}

}  // namespace
}  // namespace privatemail::testing
