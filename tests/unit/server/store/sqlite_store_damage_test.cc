// Damaged database files: the damage is reported with the file, or has no effect.
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/base/operator_only_error.h"
#include "common/base/status_macros.h"
#include "server/store/decode.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

using ::testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

template <typename Values>
void Append(const Values& values, std::string* all) {
  absl::StrAppend(all, server::BytesOf(values.data(), values.size()));
}

// Reads everything that a daemon serves.
absl::StatusOr<std::string> ReadAll(const std::string& directory) {
  PM_ASSIGN_OR_RETURN(const auto store, SqliteStore::Open(directory));
  PM_ASSIGN_OR_RETURN(const std::vector<StoredCollection> collections, store->LoadCollections());
  std::string all;
  for (const StoredCollection& collection : collections) {
    const PublicParameters& parameters = collection.parameters;
    PM_ASSIGN_OR_RETURN(const Gallery gallery, store->LoadGallery(parameters));
    PM_ASSIGN_OR_RETURN(const auto embedding, store->LoadEmbedding(parameters));
    PM_ASSIGN_OR_RETURN(const ChangesSinceEmbedding changes, store->CountChanges(parameters));
    absl::StrAppend(&all, collection.name, collection.items, " ", collection.latest_version, " ",
                    changes.inserted, changes.updated, changes.deleted, gallery.version);
    absl::StrAppend(&all, Fingerprint(parameters));
    Append(collection.anchors.features, &all);
    Append(collection.anchors.labels, &all);
    for (const std::string& id : gallery.ids) absl::StrAppend(&all, id);
    for (const std::string& payload : gallery.payloads) absl::StrAppend(&all, payload);
    Append(gallery.labels, &all);
    Append(gallery.features, &all);
    if (!embedding.has_value()) continue;
    for (const std::string& id : embedding->ids) absl::StrAppend(&all, id);
    Append(embedding->labels, &all);
    Append(embedding->coordinates, &all);
    Append(embedding->anchor_coordinates, &all);
    for (const DeletedItem& item : embedding->deleted) absl::StrAppend(&all, item.id);
    for (const std::string& payload : embedding->payloads) absl::StrAppend(&all, payload);
    absl::StrAppend(&all, embedding->version, " ", embedding->items_version, " ",
                    embedding->objective);
  }
  return all;
}

class StoreDamage : public ::testing::Test {
 protected:
  StoreDamage() {
    const StoredCollection collection = SmallCollection("fruit");
    const auto store = SqliteStore::Open(directory_.path());
    EXPECT_THAT((*store)->Create(collection), IsOk());
    EXPECT_THAT((*store)->Upsert(collection.parameters, MakeItems(200, 1)), IsOk());
    Embedding embedding = SomeEmbedding(200);
    embedding.items_version = 200;
    EXPECT_THAT((*store)->SaveEmbedding(collection.parameters, embedding), IsOk());
    EXPECT_THAT((*store)->DeleteItems(collection.parameters, {"item-003"}), IsOk());
  }

  // True if the damage was reported.
  bool Notices(const std::string& bytes) {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes;
    const absl::StatusOr<std::string> read = ReadAll(directory_.path());
    if (read.ok()) {
      EXPECT_TRUE(*read == expected_) << "something else was read";
      return false;
    }
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << read.status();
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(file_));
    EXPECT_TRUE(IsOperatorOnlyError(read.status()) || bytes.empty()) << read.status();
    return true;
  }

  const TemporaryFolder directory_;
  const std::string file_ = directory_ / "privatemail.sqlite";
  std::string sound_;
  std::string expected_;

  void SetUp() override {
    expected_ = *ReadAll(directory_.path());
    sound_ = ReadFile(file_);
    ASSERT_FALSE(Notices(sound_));
  }
};

TEST_F(StoreDamage, FlippedBitReturnsDataLoss) {
  std::mt19937 random(1);
  int noticed = 0;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = sound_;
    const size_t bit = random() % (8 * damaged.size());
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    noticed += Notices(damaged) ? 1 : 0;
  }
  EXPECT_GT(noticed, 250);  // the others are in pages that are not read, of empty tables among them
}

TEST_F(StoreDamage, TruncationReturnsDataLoss) {
  std::mt19937 random(1);
  int noticed = 0;
  for (int round = 0; round < 100; ++round) {
    noticed += Notices(sound_.substr(0, random() % sound_.size())) ? 1 : 0;
  }
  EXPECT_GT(noticed, 95);  // the rest ends within the last page, which an index has
  EXPECT_TRUE(Notices(""));
}

// As a copy of the single file from a running or killed daemon is.
TEST_F(StoreDamage, RemovedLogAndMarkReturnDataLoss) {
  ASSERT_OK_AND_ASSIGN(const auto store, SqliteStore::Open(directory_.path()));
  ASSERT_OK_AND_ASSIGN(const auto collections, store->LoadCollections());
  ASSERT_THAT(store->Upsert(collections[0].parameters, MakeItems(9, 3)), IsOk());
  const TemporaryFolder copy;
  std::filesystem::copy_file(file_, copy / "privatemail.sqlite");
  EXPECT_THAT(SqliteStore::Open(copy.path()), FailsWith(kDataLoss, "-wal is not there"));
}

TEST_F(StoreDamage, ForeignFileReturnsError) { EXPECT_TRUE(Notices(std::string(8192, 'x'))); }

}  // namespace
}  // namespace privatemail::testing
