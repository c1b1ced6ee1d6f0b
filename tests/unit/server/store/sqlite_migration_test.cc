#include <sqlite3.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/wire/parameters_proto.h"
#include "server/store/decode.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The schema of version 1, verbatim.
constexpr char kVersion1[] = R"sql(
  CREATE TABLE collections (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE,
    parameters BLOB NOT NULL,
    anchor_features BLOB NOT NULL,
    anchor_labels BLOB NOT NULL,
    items INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE items (
    collection INTEGER NOT NULL,
    id TEXT NOT NULL,
    label INTEGER NOT NULL,
    features BLOB NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (collection, id)
  ) STRICT;
  CREATE TABLE embeddings (
    collection INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    objective REAL NOT NULL,
    anchor_coordinates BLOB NOT NULL
  ) STRICT;
  CREATE TABLE embedded_items (
    collection INTEGER NOT NULL,
    position INTEGER NOT NULL,
    id TEXT NOT NULL,
    label INTEGER NOT NULL,
    coordinates BLOB NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (collection, position)
  ) STRICT, WITHOUT ROWID;
  PRAGMA user_version = 1;
)sql";

// Four items of kDim equal features and two coordinates, as blobs.
constexpr char kFeatures[] = "x'0000803f0000803f0000803f0000803f'";
constexpr char kCoordinates[] = "x'000000000000f03f0000000000000040'";

class SqliteMigration : public ::testing::Test {
 protected:
  void Run(const std::string& sql) const {
    sqlite3* file = nullptr;
    ASSERT_EQ(sqlite3_open((directory_ / "privatemail.sqlite").c_str(), &file), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(file, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(file);
  }

  // INSERTs of a collection with this many items.
  static std::string Insert(int key, const StoredCollection& collection, int items) {
    v1::PublicParameters parameters;
    ToProto(collection.parameters, &parameters);
    const auto hex = [](absl::string_view bytes) {
      return absl::StrCat("x'", absl::BytesToHexString(bytes), "'");
    };
    const Anchors& anchors = collection.anchors;
    return absl::StrCat(
        "INSERT INTO collections VALUES (", key, ", '", collection.parameters.collection_uuid,
        "', '", collection.name, "', ", hex(parameters.SerializeAsString()), ", ",
        hex(server::BytesOf(anchors.features.data(), anchors.features.size())), ", ",
        hex(server::BytesOf(anchors.labels.data(), static_cast<int64_t>(anchors.labels.size()))),
        ", ", items, ");");
  }
  static std::string InsertItem(int key, const std::string& id, int label,
                                const std::string& payload) {
    return absl::StrCat("INSERT INTO items VALUES (", key, ", '", id, "', ", label, ", ", kFeatures,
                        ", '", payload, "');");
  }
  static std::string InsertEmbedded(int key, int position, const std::string& id, int label) {
    return absl::StrCat("INSERT INTO embedded_items VALUES (", key, ", ", position, ", '", id,
                        "', ", label, ", ", kCoordinates, ", '');");
  }
  static std::string InsertEmbedding(int key) {
    const Matrix anchors = Matrix::Ones(12, 2);
    return absl::StrCat("INSERT INTO embeddings VALUES (", key, ", 7, -2.5, x'",
                        absl::BytesToHexString(server::BytesOf(anchors.data(), anchors.size())),
                        "');");
  }

  const TemporaryFolder directory_;
  const StoredCollection fruit_ = SmallCollection("fruit");
};

TEST_F(SqliteMigration, Version1FileKeepsDataAndGetsVersions) {
  Run(absl::StrCat(kVersion1, Insert(4, fruit_, 4), InsertItem(4, "new", 3, ""),
                   InsertItem(4, "same", 5, ""), InsertItem(4, "relabelled", 9, ""),
                   InsertItem(4, "described", 3, "[1]"), InsertEmbedding(4),
                   InsertEmbedded(4, 0, "described", 3), InsertEmbedded(4, 1, "relabelled", 3),
                   InsertEmbedded(4, 2, "same", 5)));
  auto store = SqliteStore::Open(directory_.path());
  ASSERT_THAT(store, IsOk());
  const auto collections = (*store)->LoadCollections();
  ASSERT_THAT(collections, IsOk());
  EXPECT_EQ(collections->front().items, 4u);
  EXPECT_EQ(collections->front().latest_version, 4u);
  EXPECT_EQ(Fingerprint(collections->front().parameters), Fingerprint(fruit_.parameters));

  const auto gallery = (*store)->LoadGallery(fruit_.parameters);
  ASSERT_THAT(gallery, IsOk());
  EXPECT_THAT(gallery->ids, ElementsAre("described", "new", "relabelled", "same"));
  EXPECT_THAT(gallery->payloads, ElementsAre("[1]", "", "", ""));
  EXPECT_EQ(gallery->features, FloatMatrix::Ones(4, kDim));
  const auto embedding = (*store)->LoadEmbedding(fruit_.parameters);
  ASSERT_THAT(embedding, IsOk());
  EXPECT_EQ((*embedding)->version, 7u);
  EXPECT_EQ((*embedding)->objective, -2.5);
  EXPECT_THAT((*embedding)->ids, ElementsAre("described", "relabelled", "same"));
  EXPECT_THAT((*embedding)->deleted, IsEmpty());
  EXPECT_EQ(*(*store)->CountChanges(fruit_.parameters), (ChangesSinceEmbedding{1, 2, 0}));
}

TEST_F(SqliteMigration, MigratedFileContinuesVersions) {
  const StoredCollection fish = SmallCollection("fish");
  Run(absl::StrCat(kVersion1, Insert(1, fruit_, 2), Insert(2, fish, 1), InsertItem(1, "a", 3, ""),
                   InsertItem(2, "f", 3, ""), InsertItem(1, "b", 5, ""), InsertEmbedding(1),
                   InsertEmbedded(1, 0, "a", 3), InsertEmbedded(1, 1, "b", 5)));
  auto store = SqliteStore::Open(directory_.path());
  ASSERT_THAT(store, IsOk());
  EXPECT_EQ(*(*store)->CountChanges(fruit_.parameters), ChangesSinceEmbedding{});
  EXPECT_EQ(*(*store)->CountChanges(fish.parameters), (ChangesSinceEmbedding{1, 0, 0}));
  const std::vector<std::string> a = {"a"};
  EXPECT_EQ((*store)->DeleteItems(fruit_.parameters, a)->latest_version, 3u);
  EXPECT_EQ((*store)->Upsert(fruit_.parameters, MakeItems(1, 1))->latest_version, 4u);
  EXPECT_EQ(*(*store)->CountChanges(fruit_.parameters), (ChangesSinceEmbedding{1, 0, 1}));
  store->reset();
  store = SqliteStore::Open(directory_.path());
  ASSERT_THAT(store, IsOk());
  EXPECT_EQ(*(*store)->CountChanges(fruit_.parameters), (ChangesSinceEmbedding{1, 0, 1}));
}

TEST_F(SqliteMigration, FailedMigrationLeavesFileUnchanged) {
  // A table of the next version exists already.
  Run(absl::StrCat(kVersion1, Insert(1, fruit_, 0), "CREATE TABLE deletions (x INTEGER);"));
  EXPECT_FALSE(SqliteStore::Open(directory_.path()).ok());
  Run("DROP TABLE deletions; SELECT items FROM collections;");
  const auto store = SqliteStore::Open(directory_.path());
  ASSERT_THAT(store, IsOk());
  EXPECT_EQ((*store)->LoadCollections()->front().name, "fruit");
}

}  // namespace
}  // namespace privatemail::testing
