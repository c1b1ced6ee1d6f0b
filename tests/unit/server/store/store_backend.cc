#include "tests/unit/server/store/store_backend.h"

#include <utility>

#include "common/sqlite/sqlite.h"
#include "server/store/postgres/postgres_store.h"
#include "server/store/sqlite/sqlite_store.h"

namespace privatemail::testing {
PostgresServer& SharedPostgres() {
  static PostgresServer server;
  return server;
}

void StoreConformance::SetUp() {
  Reopen();
  ASSERT_THAT(store_->Create(collection_), IsOk());
}

std::unique_ptr<Store> StoreConformance::OpenStore() const {
  if (GetParam() == "postgres") return PostgresStore::Open(conninfo_).value();
  return SqliteStore::Open(directory_.path()).value();
}

void StoreConformance::Reopen() {
  store_.reset();
  store_ = OpenStore();
}

int64_t StoreConformance::Rows(const std::string& table) const {
  EXPECT_THAT(RemoveRows(store_.get()), IsOk());
  const std::string count = "SELECT count(*) FROM ";
  if (GetParam() == "postgres") {
    return std::stoll(PostgresServer::Ask(conninfo_, count + "privatemail." + table));
  }
  const auto file = sqlite::Database::OpenReadOnly(directory_ / "privatemail.sqlite");
  return std::stoll((*file)->Query(count + table).value());
}

UpsertResult StoreConformance::Upsert(const std::vector<Item>& items) {
  return store_->Upsert(collection_.parameters, items).value();
}

DeleteResult StoreConformance::DeleteItems(const std::vector<std::string>& ids) {
  return store_->DeleteItems(collection_.parameters, ids).value();
}

Gallery StoreConformance::Load() { return store_->LoadGallery(collection_.parameters).value(); }

ChangesSinceEmbedding StoreConformance::Changes() {
  return store_->CountChanges(collection_.parameters).value();
}

uint64_t StoreConformance::Embed() {
  return store_->SaveEmbedding(collection_.parameters, EmbeddingOf(Load())).value();
}

std::vector<Item> StoreConformance::ScrollAll(const std::optional<PayloadFilter>& filter,
                                              int64_t limit) {
  std::vector<Item> all;
  std::optional<std::string> after = "";
  while (after) {
    ItemPage page = store_->ScrollItems(collection_.parameters, filter, *after, limit).value();
    EXPECT_LE(page.items.size(), static_cast<size_t>(limit));
    for (Item& item : page.items) all.push_back(std::move(item));
    after = page.next;
  }
  return all;
}

}  // namespace privatemail::testing
