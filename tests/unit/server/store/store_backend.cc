#include "tests/unit/server/store/store_backend.h"

#include <utility>

#include "common/sqlite/sqlite.h"
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
    const auto file = sqlite::Database::OpenReadOnly(directory_ / "privatemail.sqlite");
    EXPECT_THAT(file, IsOk());
    return std::stoll(*(*file)->Query("SELECT count(*) FROM " + table));
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
  const auto version = store_->SaveEmbedding(collection_.parameters, EmbeddingOf(Load()));
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
