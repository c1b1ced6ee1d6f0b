// A PostgreSQL server that is killed; tests/e2e/kill_test.cc kills it under load.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "absl/time/clock.h"
#include "common/base/operator_only_error.h"
#include "server/store/postgres/postgres_store.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/fixtures.h"

namespace privatemail::testing {
namespace {

TEST(PostgresServerKilled, IdleStoreAnswersFirstCallAfterRestart) {
  PostgresServer server;
  const auto store = *PostgresStore::Open(server.NewDatabase());
  const StoredCollection fruit = SmallCollection("fruit");
  ASSERT_THAT(store->Create(fruit), IsOk());
  std::vector<std::thread> callers;  // leave several idle sessions behind
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&] { EXPECT_THAT(store->LoadGallery(fruit.parameters), IsOk()); });
  }
  for (std::thread& caller : callers) caller.join();
  server.Kill();
  const absl::Status away = store->ListStates().status();
  EXPECT_THAT(away, FailsWith(kUnavailable, "the store is unavailable: database test1"));
  EXPECT_TRUE(IsOperatorOnlyError(away));
  server.Start();
  EXPECT_THAT(store->Upsert(fruit.parameters, MakeItems(3, 1)), IsOk());
}

TEST(PostgresServerKilled, WatchResumesAfterRestart) {
  PostgresServer server;
  const std::string conninfo = server.NewDatabase();
  const auto store = *PostgresStore::Open(conninfo);
  std::mutex mutex;
  std::vector<absl::Status> reports;
  std::atomic<int> calls = 0;
  const auto count = [&] {
    ++calls;
    return absl::OkStatus();
  };
  const auto watch = store->Watch(count, [&](const absl::Status& status) {
    const std::lock_guard<std::mutex> guard(mutex);
    reports.push_back(status);
  });
  ASSERT_TRUE(WaitUntil([&] { return calls > 0; }));
  const int before = calls;
  server.Kill();
  EXPECT_TRUE(WaitUntil([&] {
    const std::lock_guard<std::mutex> guard(mutex);
    return !reports.empty();
  }));
  absl::SleepFor(absl::Milliseconds(2500));  // a few more attempts: nothing shows them
  server.Start();
  ASSERT_TRUE(WaitUntil([&] { return calls > before; }));
  {
    const std::lock_guard<std::mutex> guard(mutex);
    ASSERT_FALSE(reports.empty());
    EXPECT_EQ(reports.front().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(std::adjacent_find(reports.begin(), reports.end()), reports.end())
        << "the same reason is reported once";
  }
  const int after = calls;
  ASSERT_THAT((*PostgresStore::Open(conninfo))->Create(SmallCollection("fruit")), IsOk());
  EXPECT_TRUE(WaitUntil([&] { return calls > after; }));
}

}  // namespace
}  // namespace privatemail::testing
