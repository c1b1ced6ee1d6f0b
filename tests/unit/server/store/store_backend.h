// What every store has to pass the same tests on.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_STORE_STORE_BACKEND_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_STORE_STORE_BACKEND_H_

#include <memory>
#include <string>
#include <vector>

#include "server/store/store.h"
#include "tests/testing/postgres_server.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {

// A place for one test's collections, empty at first.
class StoreBackend {
 public:
  virtual ~StoreBackend() = default;
  // The store over that place; what was opened before must be gone.
  virtual std::unique_ptr<Store> Open() = 0;
  // Rows of a table, read beside the store.
  virtual int64_t Rows(const std::string& table) = 0;
};

// One server for the whole program, started when it is first asked for.
PostgresServer& SharedPostgres();

// "sqlite" or "postgres".
std::unique_ptr<StoreBackend> MakeBackend(const std::string& kind);

// One collection, "birds", in a store of the kind that is the parameter.
class StoreConformance : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  void Reopen();

  UpsertResult Upsert(const std::vector<Item>& items);
  DeleteResult DeleteItems(const std::vector<std::string>& ids);
  Gallery Load();
  ChangesSinceEmbedding Changes();
  // Of the gallery as it is stored now, with coordinates that mean nothing.
  uint64_t Embed();
  // All pages, joined.
  std::vector<Item> ScrollAll(const std::optional<PayloadFilter>& filter, int64_t limit);

  const std::unique_ptr<StoreBackend> backend_ = MakeBackend(GetParam());
  const StoredCollection collection_ = SmallCollection("birds");
  std::unique_ptr<Store> store_;
};

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_STORE_STORE_BACKEND_H_
