#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/store/sqlite_store.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

// SQLite itself, beside the store: sees what is in the file and can put other things there.
std::string AskFile(const std::string& directory, const std::string& sql) {
  sqlite3* file = nullptr;
  EXPECT_EQ(sqlite3_open((directory + "/privatemail.sqlite").c_str(), &file), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(file, sql.c_str(), -1, &statement, nullptr), SQLITE_OK)
      << sqlite3_errmsg(file);
  std::string value;
  if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0) != nullptr) {
    value = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
  }
  sqlite3_finalize(statement);
  sqlite3_close(file);
  return value;
}

class Store : public ::testing::Test {
 protected:
  void SetUp() override {
    Reopen();
    ASSERT_THAT(store_->Create(collection_), IsOk());
  }

  void Reopen() {
    store_.reset();  // lets go of the lock first
    auto store = SqliteStore::Open(directory_.path());
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
  }

  UpsertResult Upsert(const std::vector<Item>& items) {
    auto result = store_->Upsert(collection_.parameters, items);
    EXPECT_THAT(result, IsOk());
    return *result;
  }

  Gallery Load() {
    auto gallery = store_->LoadGallery(collection_.parameters);
    EXPECT_THAT(gallery, IsOk());
    return *std::move(gallery);
  }

  const TemporaryFolder directory_;
  const StoredCollection collection_ = SmallCollection("birds");
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(Store, TellsInsertedUpdatedAndUnchangedApart) {
  std::vector<Item> items = MakeItems(5, 1);
  UpsertResult result = Upsert(items);
  EXPECT_EQ(result.inserted, 5u);
  EXPECT_EQ(result.updated + result.unchanged, 0u);

  items[0].label = 9;
  items[1].features[2] += 1;
  items[2].payload = R"({"file": "x.png"})";
  items.push_back(MakeItem("new", 3, 77));
  result = Upsert(items);
  EXPECT_EQ(result.inserted, 1u);
  EXPECT_EQ(result.updated, 3u);
  EXPECT_EQ(result.unchanged, 2u);

  const Gallery gallery = Load();
  EXPECT_EQ(gallery.labels[0], 9);
  EXPECT_EQ(gallery.features(1, 2), items[1].features[2]);
  EXPECT_EQ(gallery.payloads[2], R"({"file": "x.png"})");
  EXPECT_THAT(gallery.ids, SizeIs(6));
}

TEST_F(Store, LetsTheLastOfEqualIdsInABatchWin) {
  const UpsertResult result = Upsert({MakeItem("a", 3, 1), MakeItem("a", 5, 2)});
  EXPECT_EQ(result.inserted, 1u);
  EXPECT_EQ(result.updated, 1u);
  EXPECT_THAT(Load().labels, ElementsAre(5));
}

struct BadItem {
  const char* name;
  std::function<void(Item*)> spoil;
  const char* reason;
};

class StoreRejects : public Store, public ::testing::WithParamInterface<BadItem> {};

TEST_P(StoreRejects, AMalformedItemAloneAndSaysWhy) {
  std::vector<Item> items = MakeItems(3, 1);
  GetParam().spoil(&items[1]);
  const UpsertResult result = Upsert(items);
  EXPECT_EQ(result.inserted, 2u);
  ASSERT_THAT(result.rejected, SizeIs(1));
  EXPECT_EQ(result.rejected[0].position, 1u);
  EXPECT_THAT(result.rejected[0].reason, HasSubstr(GetParam().reason));
  EXPECT_THAT(Load().ids, ElementsAre("item-000", "item-002"));
}

INSTANTIATE_TEST_SUITE_P(
    BadItems, StoreRejects,
    ::testing::Values(
        BadItem{"EmptyId", [](Item* item) { item->id.clear(); }, "id must be 1 to 512 bytes"},
        BadItem{"LongId", [](Item* item) { item->id.assign(513, 'x'); }, "but has 513 bytes"},
        BadItem{"IdWithABareContinuationByte", [](Item* item) { item->id = "a\x80"; }, "not UTF-8"},
        BadItem{"IdWithASurrogate", [](Item* item) { item->id = "\xed\xa0\x80"; }, "not UTF-8"},
        BadItem{"IdWithAnOverlongSlash", [](Item* item) { item->id = "\xc0\xaf"; }, "not UTF-8"},
        BadItem{"ShortFeatures", [](Item* item) { item->features.resize(3); }, "expected 4, got 3"},
        BadItem{"LongFeatures", [](Item* item) { item->features.resize(8); }, "expected 4, got 8"},
        BadItem{"NoFeatures", [](Item* item) { item->features.clear(); }, "expected 4, got 0"},
        BadItem{"Nan", [](Item* item) { item->features[2] = std::nanf(""); },
                "value in column 2 is nan"},
        BadItem{"Infinity", [](Item* item) { item->features[0] = -HUGE_VALF; },
                "value in column 0 is -inf"},
        BadItem{"ZeroVector", [](Item* item) { item->features.assign(kDim, 0); },
                "all 4 values are zero"},
        BadItem{"LabelBetweenClasses", [](Item* item) { item->label = 4; },
                "label must be one of the collection's 3 classes (3 to 9), but is 4"},
        BadItem{"PayloadThatIsNoJson", [](Item* item) { item->payload = "{'a': 1}"; },
                "payload must be empty or a JSON text"},
        BadItem{"PayloadThatIsNestedTooDeep",
                [](Item* item) { item->payload = std::string(65, '[') + std::string(65, ']'); },
                "payload must be nested at most 64 deep"},
        BadItem{"PayloadWithALatin1Byte", [](Item* item) { item->payload = "\"\xe9\""; },
                "payload must be empty or a JSON text"}),
    [](const auto& info) { return info.param.name; });

TEST_F(Store, TakesTheLongestIdAndEveryKindOfJson) {
  std::vector<Item> items = MakeItems(3, 1);
  items[0].id.assign(512, 'x');
  items[1].payload = "null";
  items[2].payload = std::string(64, '[') + std::string(64, ']');
  EXPECT_THAT(Upsert(items).rejected, IsEmpty());
}

TEST_F(Store, OrdersTheGalleryByTheBytesOfIds) {
  const std::string with_nul("a\0b", 3);
  std::vector<Item> items;
  for (const std::string& id : {std::string("b"), std::string("\xc3\xa9"), std::string("a"),
                                with_nul, std::string("B"), std::string("aa")}) {
    items.push_back(MakeItem(id, 3, static_cast<unsigned>(items.size())));
  }
  EXPECT_EQ(Upsert(items).inserted, 6u);
  EXPECT_THAT(Load().ids, ElementsAre("B", "a", with_nul, "aa", "b", "\xc3\xa9"));
}

Embedding SomeEmbedding(int items) {
  Embedding embedding;
  embedding.objective = -1.25;
  for (const Item& item : MakeItems(items, 1)) {
    embedding.ids.push_back(item.id);
    embedding.labels.push_back(item.label);
    embedding.payloads.push_back(item.payload);
  }
  embedding.coordinates = Matrix::Random(items, 2);
  embedding.anchor_coordinates = Matrix::Random(12, 2);
  return embedding;
}

TEST_F(Store, HoldsEverythingBitForBitAfterReopening) {
  std::vector<Item> items = MakeItems(7, 1);
  items[3].payload = "[1,2]";
  Upsert(items);
  const Embedding embedding = SomeEmbedding(7);
  ASSERT_THAT(store_->SaveEmbedding(collection_.parameters, embedding), IsOk());
  Reopen();

  const auto collections = store_->LoadCollections();
  ASSERT_THAT(collections, IsOk());
  ASSERT_THAT(*collections, SizeIs(1));
  const StoredCollection& loaded = collections->front();
  EXPECT_EQ(loaded.name, "birds");
  EXPECT_EQ(loaded.items, 7u);
  EXPECT_EQ(Fingerprint(loaded.parameters), Fingerprint(collection_.parameters));
  EXPECT_EQ(loaded.anchors.features, collection_.anchors.features);
  EXPECT_EQ(loaded.anchors.labels, collection_.anchors.labels);

  const Gallery gallery = Load();
  ASSERT_THAT(gallery.ids, SizeIs(7));
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(gallery.ids[i], items[i].id);
    EXPECT_EQ(gallery.labels[i], items[i].label);
    EXPECT_EQ(gallery.payloads[i], items[i].payload);
    for (int j = 0; j < kDim; ++j) EXPECT_EQ(gallery.features(i, j), items[i].features[j]);
  }

  const auto restored = store_->LoadEmbedding(collection_.parameters);
  ASSERT_THAT(restored, IsOk());
  ASSERT_TRUE(restored->has_value());
  EXPECT_EQ((*restored)->version, 1u);
  EXPECT_EQ((*restored)->objective, -1.25);
  EXPECT_EQ((*restored)->ids, embedding.ids);
  EXPECT_EQ((*restored)->labels, embedding.labels);
  EXPECT_EQ((*restored)->coordinates, embedding.coordinates);
  EXPECT_EQ((*restored)->anchor_coordinates, embedding.anchor_coordinates);
}

TEST_F(Store, HasNoEmbeddingBeforeTheFirstAndThenGrowingVersions) {
  EXPECT_EQ(*store_->LoadEmbedding(collection_.parameters), std::nullopt);
  EXPECT_EQ(*store_->SaveEmbedding(collection_.parameters, SomeEmbedding(5)), 1u);
  EXPECT_EQ(*store_->SaveEmbedding(collection_.parameters, SomeEmbedding(3)), 2u);
  EXPECT_THAT((**store_->LoadEmbedding(collection_.parameters)).ids, SizeIs(3));
}

TEST_F(Store, DeletesACollectionWithAllThatBelongsToItAndNothingElse) {
  const StoredCollection other = SmallCollection("fish");
  ASSERT_THAT(store_->Create(other), IsOk());
  ASSERT_THAT(store_->Upsert(other.parameters, MakeItems(2, 5)), IsOk());
  Upsert(MakeItems(4, 1));
  ASSERT_THAT(store_->SaveEmbedding(collection_.parameters, SomeEmbedding(4)), IsOk());

  const auto deleted = store_->Delete(collection_.parameters.collection_uuid);
  ASSERT_THAT(deleted, IsOk());
  EXPECT_EQ(*deleted, 4u);
  for (const auto& [table, rows] : {std::pair{"collections", "1"},
                                    {"items", "2"},
                                    {"embeddings", "0"},
                                    {"embedded_items", "0"}}) {
    EXPECT_EQ(AskFile(directory_.path(), absl::StrCat("SELECT count(*) FROM ", table)), rows)
        << table;
  }
  const auto code = absl::StatusCode::kNotFound;
  EXPECT_THAT(store_->Delete(collection_.parameters.collection_uuid), FailsWith(code, ""));
  EXPECT_THAT(store_->Upsert(collection_.parameters, MakeItems(1, 1)), FailsWith(code, ""));
  EXPECT_THAT(store_->LoadGallery(collection_.parameters), FailsWith(code, ""));
  EXPECT_THAT(store_->SaveEmbedding(collection_.parameters, SomeEmbedding(1)), FailsWith(code, ""));
}

TEST_F(Store, RefusesANameThatIsTaken) {
  EXPECT_THAT(store_->Create(SmallCollection("birds")),
              FailsWith(absl::StatusCode::kAlreadyExists, "collection birds exists already"));
}

TEST_F(Store, IsLockedAgainstASecondDaemonThatIsToldThePid) {
  EXPECT_THAT(SqliteStore::Open(directory_.path()),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        absl::StrCat("data directory ", directory_.path(),
                                     " is locked by another daemon (pid ", ::getpid(), ")")));
  Reopen();
}

TEST_F(Store, KeepsAWriteAheadLog) {
  EXPECT_EQ(AskFile(directory_.path(), "PRAGMA journal_mode"), "wal");
}

TEST_F(Store, RefusesADatabaseOfANewerVersion) {
  store_.reset();
  AskFile(directory_.path(), "PRAGMA user_version = 2");
  EXPECT_THAT(SqliteStore::Open(directory_.path()),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        "has schema version 2, this program knows versions up to 1"));
}

TEST_F(Store, NoticesAnchorsThatDoNotMatchTheirDigest) {
  store_.reset();
  AskFile(directory_.path(), "UPDATE collections SET anchor_features = zeroblob(192)");
  Reopen();
  EXPECT_THAT(store_->LoadCollections(),
              FailsWith(absl::StatusCode::kDataLoss, "the anchors do not match their digest"));
}

TEST_F(Store, NoticesFeaturesOfAnotherLength) {
  Upsert(MakeItems(2, 1));
  store_.reset();
  AskFile(directory_.path(), "UPDATE items SET features = zeroblob(12) WHERE id = 'item-001'");
  Reopen();
  EXPECT_THAT(store_->LoadGallery(collection_.parameters),
              FailsWith(absl::StatusCode::kDataLoss,
                        "features of item item-001: expected 1 x 4 values of 4 bytes, got 12"));
}

TEST_F(Store, CountsEveryItemOfWritersAtOnce) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 10; ++i) {
        Upsert({MakeItem(absl::StrCat(writer, "-", i), 3, 1), MakeItem("shared", 3, 1)});
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(store_->LoadCollections()->front().items, 41u);
  EXPECT_THAT(Load().ids, SizeIs(41));
}

TEST(StoreDirectory, IsMadeForItsOwnerAlone) {
  const TemporaryFolder parent;
  for (const std::string name : {"a/b", "c/"}) {
    ASSERT_THAT(SqliteStore::Open(parent / name), IsOk());
    struct stat info = {};
    ASSERT_EQ(::stat((parent / name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u) << name;
  }
}

TEST(StoreDirectory, ThatCannotBeMadeIsNamedWithTheReason) {
  EXPECT_THAT(SqliteStore::Open("/proc/nowhere/data"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "cannot create directory /proc/"));
  EXPECT_THAT(SqliteStore::Open(""), FailsWith(absl::StatusCode::kFailedPrecondition, "empty"));
}

TEST(Uuid, IsOfVersion4AndNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const auto uuid = NewUuid();
    ASSERT_THAT(uuid, IsOk());
    EXPECT_THAT(*uuid, MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
                                    "[0-9a-f]{12}"));
    seen.insert(*uuid);
  }
  EXPECT_THAT(seen, SizeIs(100));
}

}  // namespace
}  // namespace privatemail::testing
