// A fixture for tests that every store must pass.
#ifndef PRIVATEMAIL_TESTS_UNIT_SERVER_STORE_STORE_BACKEND_H_
#define PRIVATEMAIL_TESTS_UNIT_SERVER_STORE_STORE_BACKEND_H_

#include <memory>
#include <string>
#include <vector>

#include "server/store/store.h"
#include "tests/testing/postgres_server.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {

// Storage of one test, initially empty.
class StoreBackend {
 public:
  virtual ~StoreBackend() = default;
  // Opens the store; the former one must be destroyed.
  virtual std::unique_ptr<Store> Open() = 0;
  // Rows of a table, read without the store.
  virtual int64_t Rows(const std::string& table) = 0;
};

// One server for the program, started on first use.
PostgresServer& SharedPostgres();

// "sqlite" or "postgres".
std::unique_ptr<StoreBackend> MakeBackend(const std::string& kind);

// One collection, "fruit", in a store of the parameter's kind.
class StoreConformance : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  void Reopen();

  UpsertResult Upsert(const std::vector<Item>& items);
  DeleteResult DeleteItems(const std::vector<std::string>& ids);
  Gallery Load();
  ChangesSinceEmbedding Changes();
  // An embedding of the stored gallery, with arbitrary coordinates.
  uint64_t Embed();
  // All pages, joined.
  std::vector<Item> ScrollAll(const std::optional<PayloadFilter>& filter, int64_t limit);

  const std::unique_ptr<StoreBackend> backend_ = MakeBackend(GetParam());
  const StoredCollection collection_ = SmallCollection("fruit");
  std::unique_ptr<Store> store_;
};

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_STORE_STORE_BACKEND_H_
