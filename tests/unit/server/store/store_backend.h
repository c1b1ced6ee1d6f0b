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

// One server for the program, started on first use.
PostgresServer& SharedPostgres();

// One collection, "fruit", in a store of the kind "sqlite" or "postgres".
class StoreConformance : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  // Opens the store; of SQLite, the former one must be destroyed.
  std::unique_ptr<Store> OpenStore() const;
  void Reopen();
  // Rows of a table, read without the store, after the store has removed what deletions have left.
  int64_t Rows(const std::string& table) const;

  UpsertResult Upsert(const std::vector<Item>& items);
  DeleteResult DeleteItems(const std::vector<std::string>& ids);
  Gallery Load();
  ChangesSinceEmbedding Changes();
  // An embedding of the stored gallery, with arbitrary coordinates.
  uint64_t Embed();
  // All pages, joined.
  std::vector<Item> ScrollAll(const std::optional<PayloadFilter>& filter, int64_t limit);

  const TemporaryFolder directory_;
  const std::string conninfo_ = GetParam() == "postgres" ? SharedPostgres().NewDatabase() : "";
  const StoredCollection collection_ = SmallCollection("fruit");
  std::unique_ptr<Store> store_;
};

}  // namespace privatemail::testing

#endif  // PRIVATEMAIL_TESTS_UNIT_SERVER_STORE_STORE_BACKEND_H_
