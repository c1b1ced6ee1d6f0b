// A PostgreSQL server that is killed.
#include <atomic>
#include <thread>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/operator_only_error.h"
#include "tests/testing/wait_until.h"
#include "tests/unit/server/store/postgres_fixture.h"

namespace privatemail::testing {
namespace {

using ::testing::HasSubstr;

// The results of all writers.
struct Results {
  std::atomic<bool> done = false;
  std::atomic<int> stored = 0;
  std::atomic<int> refused = 0;
};

bool Reaches(const std::atomic<int>& count, int wanted) {
  return WaitUntil([&] { return count >= wanted; });
}

// Returns the ids whose upsert was acknowledged.
std::vector<std::string> WriteUntilDone(Results* results, Store& store, int writer,
                                        const PublicParameters& parameters) {
  std::vector<std::string> acknowledged;
  for (int i = 0; !results->done; ++i) {
    const std::string id = absl::StrFormat("%d-%06d", writer, i);
    const auto result = store.Upsert(parameters, {{MakeItem(id, 3, i)}});
    if (result.ok()) {
      acknowledged.push_back(id);
      ++results->stored;
      continue;
    }
    ++results->refused;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable) << result.status();
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("the store is unavailable"));
    EXPECT_TRUE(IsOperatorOnlyError(result.status())) << result.status();
    absl::SleepFor(absl::Milliseconds(20));  // paces the load, is not a wait
  }
  return acknowledged;
}

TEST(PostgresServerKilled, StoreRecoversWithoutLosingAcknowledgedWrites) {
  constexpr int kWriters = 4;
  constexpr int kRounds = 3;
  PostgresServer server;
  const auto store = OpenStore(server.NewDatabase(), {kWriters, absl::Seconds(10)});
  const StoredCollection fruit = SmallCollection("fruit");
  ASSERT_THAT(store->Create(fruit), IsOk());
  Results results;
  std::vector<std::string> written[kWriters];
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      written[writer] = WriteUntilDone(&results, *store, writer, fruit.parameters);
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_TRUE(Reaches(results.stored, results.stored + 100)) << "it has not recovered";
    server.Kill();
    EXPECT_TRUE(Reaches(results.refused, results.refused + kWriters));
    server.Start();
  }
  EXPECT_TRUE(Reaches(results.stored, results.stored + 100)) << "it has not recovered";
  results.done = true;
  for (std::thread& writer : writers) writer.join();

  const auto gallery = store->LoadGallery(fruit.parameters);
  ASSERT_THAT(gallery, IsOk());
  for (const std::vector<std::string>& ids : written) {
    for (const std::string& id : ids) {
      EXPECT_TRUE(std::binary_search(gallery->ids.begin(), gallery->ids.end(), id)) << id;
    }
  }
  // Plus at most one unacknowledged write per writer and round.
  const auto acknowledged = static_cast<size_t>(results.stored);
  EXPECT_LE(gallery->ids.size(), acknowledged + kRounds * kWriters);
  EXPECT_EQ(store->ListStates()->front().items, gallery->ids.size());
}

TEST(PostgresServerKilled, IdleStoreAnswersFirstCallAfterRestart) {
  PostgresServer server;
  const auto store = OpenStore(server.NewDatabase());
  const StoredCollection fruit = SmallCollection("fruit");
  ASSERT_THAT(store->Create(fruit), IsOk());
  std::vector<std::thread> callers;  // leave several idle sessions behind
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&] { EXPECT_THAT(store->LoadGallery(fruit.parameters), IsOk()); });
  }
  for (std::thread& caller : callers) caller.join();
  server.Kill();
  EXPECT_THAT(store->ListStates(),
              FailsWith(kUnavailable, "the store is unavailable: database test1"));
  server.Start();
  EXPECT_THAT(store->Upsert(fruit.parameters, MakeItems(3, 1)), IsOk());
}

TEST(PostgresServerKilled, WatchResumesAfterRestart) {
  PostgresServer server;
  const std::string conninfo = server.NewDatabase();
  const auto store = OpenStore(conninfo);
  std::mutex mutex;
  std::vector<absl::Status> reports;
  Counter counter;
  const auto watch = store->Watch(counter.callback(), [&](const absl::Status& status) {
    const std::lock_guard<std::mutex> guard(mutex);
    reports.push_back(status);
  });
  ASSERT_TRUE(counter.WaitForMoreThan(0));
  const int before = counter.calls();
  server.Kill();
  EXPECT_TRUE(WaitUntil([&] {
    const std::lock_guard<std::mutex> guard(mutex);
    return !reports.empty();
  }));
  absl::SleepFor(absl::Milliseconds(2500));  // a few more attempts: nothing shows them
  server.Start();
  ASSERT_TRUE(counter.WaitForMoreThan(before));
  {
    const std::lock_guard<std::mutex> guard(mutex);
    ASSERT_FALSE(reports.empty());
    EXPECT_EQ(reports.front().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(std::adjacent_find(reports.begin(), reports.end()), reports.end())
        << "the same reason is reported once";
  }
  const int after = counter.calls();
  ASSERT_THAT(OpenStore(conninfo)->Create(SmallCollection("fruit")), IsOk());
  EXPECT_TRUE(counter.WaitForMoreThan(after));
}

}  // namespace
}  // namespace privatemail::testing
