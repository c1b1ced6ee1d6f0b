#include "tests/unit/server/store/store_backend.h"

#include <sqlite3.h>

#include <utility>

#include "common/sqlite/checksum_vfs.h"
#include "server/store/postgres/postgres_store.h"
#include "server/store/sqlite/sqlite_store.h"

namespace privatemail::testing {
namespace {

class SqliteBackend final : public StoreBackend {
 public:
  std::unique_ptr<Store> Open() override {
    auto store = SqliteStore::Open(directory_.path());
    EXPECT_THAT(store, IsOk());
    return *std::move(store);
  }

  int64_t Rows(const std::string& table) override {
    sqlite3* file = nullptr;
    EXPECT_EQ(sqlite3_open_v2((directory_ / "privatemail.sqlite").c_str(), &file,
                              SQLITE_OPEN_READWRITE, sqlite::ChecksumVfsName()),
              SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    const std::string sql = "SELECT count(*) FROM " + table;
    EXPECT_EQ(sqlite3_prepare_v2(file, sql.c_str(), -1, &statement, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const int64_t rows = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(file);
    return rows;
  }

 private:
  const TemporaryFolder directory_;
};

class PostgresBackend final : public StoreBackend {
 public:
  std::unique_ptr<Store> Open() override {
    auto store = PostgresStore::Open(conninfo_);
    EXPECT_THAT(store, IsOk());
    return *std::move(store);
  }

  int64_t Rows(const std::string& table) override {
    return std::stoll(PostgresServer::Ask(conninfo_, "SELECT count(*) FROM privatemail." + table));
  }

 private:
  const std::string conninfo_ = SharedPostgres().NewDatabase();
};

}  // namespace

PostgresServer& SharedPostgres() {
  static PostgresServer server;
  return server;
}

std::unique_ptr<StoreBackend> MakeBackend(const std::string& kind) {
  if (kind == "postgres") return std::make_unique<PostgresBackend>();
  return std::make_unique<SqliteBackend>();
}

void StoreConformance::SetUp() {
  Reopen();
  ASSERT_THAT(store_->Create(collection_), IsOk());
}

void StoreConformance::Reopen() {
  store_.reset();
  store_ = backend_->Open();
}

UpsertResult StoreConformance::Upsert(const std::vector<Item>& items) {
  auto result = store_->Upsert(collection_.parameters, items);
  EXPECT_THAT(result, IsOk());
  return *result;
}

DeleteResult StoreConformance::DeleteItems(const std::vector<std::string>& ids) {
  auto result = store_->DeleteItems(collection_.parameters, ids);
  EXPECT_THAT(result, IsOk());
  return *result;
}

Gallery StoreConformance::Load() {
  auto gallery = store_->LoadGallery(collection_.parameters);
  EXPECT_THAT(gallery, IsOk());
  return *std::move(gallery);
}

ChangesSinceEmbedding StoreConformance::Changes() {
  auto changes = store_->CountChanges(collection_.parameters);
  EXPECT_THAT(changes, IsOk());
  return *changes;
}

uint64_t StoreConformance::Embed() {
  Gallery gallery = Load();
  Embedding embedding;
  embedding.items_version = gallery.version;
  embedding.ids = std::move(gallery.ids);
  embedding.labels = std::move(gallery.labels);
  embedding.payloads = std::move(gallery.payloads);
  embedding.coordinates = Matrix::Random(gallery.features.rows(), 2);
  embedding.anchor_coordinates = Matrix::Random(12, 2);
  const auto version = store_->SaveEmbedding(collection_.parameters, embedding);
  EXPECT_THAT(version, IsOk());
  return *version;
}

std::vector<Item> StoreConformance::ScrollAll(const std::optional<PayloadFilter>& filter,
                                              int64_t limit) {
  std::vector<Item> all;
  std::optional<std::string> after = "";
  while (after) {
    auto page = store_->ScrollItems(collection_.parameters, filter, *after, limit);
    EXPECT_THAT(page, IsOk());
    EXPECT_LE(page->items.size(), static_cast<size_t>(limit));
    for (Item& item : page->items) all.push_back(std::move(item));
    after = page->next;
  }
  return all;
}

}  // namespace privatemail::testing
