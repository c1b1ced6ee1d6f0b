// What is PostgreSQL's own: several daemons on one database, and a server that dies.
#include "server/store/postgres/postgres_store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/testing/postgres_server.h"
#include "tests/unit/server/fixtures.h"
#include "tests/unit/server/store_backend.h"

namespace privatemail::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::unique_ptr<PostgresStore> OpenStore(const std::string& conninfo,
                                         const postgres::PoolOptions& options = {}) {
  auto store = PostgresStore::Open(conninfo, options);
  EXPECT_THAT(store, IsOk());
  return *std::move(store);
}

// Counts the calls of a watch.
class Counter {
 public:
  std::function<absl::Status()> callback() {
    return [this] {
      const std::lock_guard<std::mutex> guard(mutex_);
      ++calls_;
      changed_.notify_all();
      return absl::OkStatus();
    };
  }
  int calls() {
    const std::lock_guard<std::mutex> guard(mutex_);
    return calls_;
  }
  bool WaitForMoreThan(int calls) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return calls_ > calls; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int calls_ = 0;
};

class TwoDaemons : public ::testing::Test {
 protected:
  const std::string conninfo_ = SharedPostgres().NewDatabase();
  const StoredCollection birds_ = SmallCollection("birds");
  const std::unique_ptr<Store> one_ = OpenStore(conninfo_);
  const std::unique_ptr<Store> other_ = OpenStore(conninfo_);
};

TEST_F(TwoDaemons, OneOfTwoThatCreateTheSameNameAtOnceIsRefused) {
  for (int round = 0; round < 10; ++round) {
    const std::string name = absl::StrCat("c", round);
    absl::Status outcome[2];
    std::thread first([&] { outcome[0] = one_->Create(SmallCollection(name)); });
    outcome[1] = other_->Create(SmallCollection(name));
    first.join();
    EXPECT_NE(outcome[0].ok(), outcome[1].ok());
    EXPECT_THAT(outcome[0].ok() ? outcome[1] : outcome[0],
                FailsWith(absl::StatusCode::kAlreadyExists, "exists already"));
  }
}

TEST_F(TwoDaemons, AnUpsertIntoACollectionThatTheOtherDeletedIsNotFound) {
  ASSERT_THAT(one_->Create(birds_), IsOk());
  EXPECT_THAT(other_->Delete(birds_.parameters.collection_uuid), IsOk());
  EXPECT_THAT(one_->Upsert(birds_.parameters, MakeItems(1, 1)),
              FailsWith(absl::StatusCode::kNotFound, ""));
  EXPECT_THAT(one_->SaveEmbedding(birds_.parameters, SomeEmbedding(1)),
              FailsWith(absl::StatusCode::kNotFound, ""));
}

TEST_F(TwoDaemons, WritersOfBothNeverShareAVersionNorLoseAnItem) {
  ASSERT_THAT(one_->Create(birds_), IsOk());
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 6; ++writer) {
    writers.emplace_back([&, writer] {
      Store& store = writer % 2 == 0 ? *one_ : *other_;
      for (int i = 0; i < 20; ++i) {
        EXPECT_THAT(store.Upsert(birds_.parameters,
                                 std::vector<Item>{MakeItem(absl::StrCat(writer, "-", i), 3, 1),
                                                   MakeItem("shared", 3, writer * 100 + i)}),
                    IsOk());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const auto page = one_->ScrollItems(birds_.parameters, {}, "", 1000);
  ASSERT_THAT(page, IsOk());
  EXPECT_THAT(page->items, SizeIs(121));
  std::vector<uint64_t> versions;
  for (const Item& item : page->items) versions.push_back(item.version);
  std::sort(versions.begin(), versions.end());
  EXPECT_EQ(std::unique(versions.begin(), versions.end()), versions.end());
  EXPECT_EQ(one_->ListStates()->front().latest_version, 240u);
  EXPECT_EQ(one_->ListStates()->front().items, 121u);
}

TEST_F(TwoDaemons, ItemsMayChangeWhileTheOtherSavesAnEmbedding) {
  ASSERT_THAT(one_->Create(birds_), IsOk());
  ASSERT_THAT(one_->Upsert(birds_.parameters, MakeItems(10, 1)), IsOk());
  Embedding large = SomeEmbedding(1);
  large.items_version = 10;
  large.ids.clear();
  for (int i = 0; i < 100000; ++i) large.ids.push_back(absl::StrFormat("%06d", i));
  large.labels.assign(large.ids.size(), 3);
  large.payloads.assign(large.ids.size(), "{}");
  large.coordinates = Matrix::Random(static_cast<Eigen::Index>(large.ids.size()), 2);
  std::atomic<bool> saved = false;
  std::thread saver([&] {
    EXPECT_THAT(one_->SaveEmbedding(birds_.parameters, large), IsOk());
    saved = true;
  });
  int meanwhile = 0;
  for (int i = 0; !saved; ++i) {
    EXPECT_THAT(other_->Upsert(birds_.parameters, {{MakeItem(absl::StrCat("x", i), 3, 1)}}),
                IsOk());
    if (!saved) ++meanwhile;
  }
  saver.join();
  EXPECT_GE(meanwhile, 2) << "one may have come before the other began";
  const auto loaded = other_->LoadEmbedding(birds_.parameters);
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ((*loaded)->ids, large.ids);
  EXPECT_EQ((*loaded)->coordinates, large.coordinates);
}

TEST_F(TwoDaemons, TheOtherIsToldOfEveryKindOfChange) {
  Counter counter;
  const auto watch = other_->Watch(counter.callback(), nullptr);
  ASSERT_TRUE(counter.WaitForMoreThan(0)) << "once at first";
  const std::vector<std::string> ids = {"item-000"};
  const std::vector<std::function<absl::Status()>> changes = {
      [&] { return one_->Create(birds_); },
      [&] { return one_->Upsert(birds_.parameters, MakeItems(3, 1)).status(); },
      [&] { return one_->DeleteItems(birds_.parameters, ids).status(); },
      [&] { return one_->SaveEmbedding(birds_.parameters, SomeEmbedding(2)).status(); },
      [&] { return one_->Delete(birds_.parameters.collection_uuid).status(); }};
  for (size_t i = 0; i < changes.size(); ++i) {
    const int before = counter.calls();
    ASSERT_THAT(changes[i](), IsOk());
    EXPECT_TRUE(counter.WaitForMoreThan(before)) << i;
  }
}

TEST_F(TwoDaemons, AWatchThatWasCutOffCatchesUpByItself) {
  ASSERT_THAT(one_->Create(birds_), IsOk());
  std::atomic<uint64_t> seen = 0;
  Counter counter;
  const auto watch = other_->Watch(
      [&] {
        seen = other_->ListStates()->front().latest_version;
        return counter.callback()();
      },
      nullptr);
  ASSERT_TRUE(counter.WaitForMoreThan(0));
  const int before = counter.calls();
  const size_t name_at = conninfo_.find("dbname=") + 7;
  const std::string database = conninfo_.substr(name_at);
  const std::string elsewhere = conninfo_.substr(0, name_at) + "postgres";
  // Nobody can come back before the change is committed, so nobody is told of it.
  PostgresServer::Ask(elsewhere, "ALTER DATABASE " + database + " ALLOW_CONNECTIONS false");
  PostgresServer::Ask(elsewhere,
                      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                      "WHERE query LIKE 'LISTEN%' AND datname = '" +
                          database + "'");
  ASSERT_THAT(one_->Upsert(birds_.parameters, MakeItems(1, 1)), IsOk());
  EXPECT_EQ(counter.calls(), before);
  PostgresServer::Ask(elsewhere, "ALTER DATABASE " + database + " ALLOW_CONNECTIONS true");
  ASSERT_TRUE(counter.WaitForMoreThan(before)) << "it has not looked again";
  EXPECT_EQ(seen, 1u);
  const int after = counter.calls();
  ASSERT_THAT(one_->Upsert(birds_.parameters, MakeItems(2, 1)), IsOk());
  EXPECT_TRUE(counter.WaitForMoreThan(after)) << "it does not listen any more";
}

TEST_F(TwoDaemons, AWatchCallsAgainWhileItsCallbackFails) {
  std::atomic<int> calls = 0;
  const auto watch = one_->Watch(
      [&] { return ++calls < 3 ? absl::UnavailableError("not yet") : absl::OkStatus(); }, nullptr);
  for (int i = 0; i < 100 && calls < 3; ++i) absl::SleepFor(absl::Milliseconds(100));
  absl::SleepFor(absl::Milliseconds(1500));
  EXPECT_EQ(calls, 3);
}

// What writers were told, all of them together.
struct Told {
  std::atomic<bool> done = false;
  std::atomic<int> stored = 0;
  std::atomic<int> refused = 0;
};

bool Reaches(const std::atomic<int>& count, int wanted) {
  for (const absl::Time start = absl::Now(); absl::Now() - start < absl::Seconds(60);) {
    if (count >= wanted) return true;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return false;
}

// Returns the ids whose upsert was acknowledged.
std::vector<std::string> WriteUntilDone(Told* told, Store& store, int writer,
                                        const PublicParameters& parameters) {
  std::vector<std::string> acknowledged;
  for (int i = 0; !told->done; ++i) {
    const std::string id = absl::StrFormat("%d-%06d", writer, i);
    const auto result = store.Upsert(parameters, {{MakeItem(id, 3, i)}});
    if (result.ok()) {
      acknowledged.push_back(id);
      ++told->stored;
      continue;
    }
    ++told->refused;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kUnavailable) << result.status();
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("the store is unavailable"));
    absl::SleepFor(absl::Milliseconds(20));
  }
  return acknowledged;
}

TEST(PostgresServerKilled, LosesNothingThatWasAcknowledgedAndTheStoreRecoversByItself) {
  constexpr int kWriters = 4;
  constexpr int kRounds = 3;
  PostgresServer server;
  const auto store = OpenStore(server.NewDatabase(), {kWriters, absl::Seconds(10)});
  const StoredCollection birds = SmallCollection("birds");
  ASSERT_THAT(store->Create(birds), IsOk());
  Told told;
  std::vector<std::string> written[kWriters];
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back(
        [&, writer] { written[writer] = WriteUntilDone(&told, *store, writer, birds.parameters); });
  }
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_TRUE(Reaches(told.stored, told.stored + 100)) << "it has not recovered";
    server.Kill();
    EXPECT_TRUE(Reaches(told.refused, told.refused + kWriters));
    server.Start();
  }
  EXPECT_TRUE(Reaches(told.stored, told.stored + 100)) << "it has not recovered";
  told.done = true;
  for (std::thread& writer : writers) writer.join();

  const auto gallery = store->LoadGallery(birds.parameters);
  ASSERT_THAT(gallery, IsOk());
  for (const std::vector<std::string>& ids : written) {
    for (const std::string& id : ids) {
      EXPECT_TRUE(std::binary_search(gallery->ids.begin(), gallery->ids.end(), id)) << id;
    }
  }
  // Beyond that only what was under way when the server died, one a writer and round.
  const auto acknowledged = static_cast<size_t>(told.stored);
  EXPECT_LE(gallery->ids.size(), acknowledged + kRounds * kWriters);
  EXPECT_EQ(store->ListStates()->front().items, gallery->ids.size());
}

TEST(PostgresServerKilled, AnIdleStoreAnswersTheFirstCallAfterARestart) {
  PostgresServer server;
  const auto store = OpenStore(server.NewDatabase());
  const StoredCollection birds = SmallCollection("birds");
  ASSERT_THAT(store->Create(birds), IsOk());
  std::vector<std::thread> callers;  // leave several idle sessions behind
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&] { EXPECT_THAT(store->LoadGallery(birds.parameters), IsOk()); });
  }
  for (std::thread& caller : callers) caller.join();
  server.Kill();
  EXPECT_THAT(store->ListStates(), FailsWith(absl::StatusCode::kUnavailable,
                                             "the store is unavailable: database test1"));
  server.Start();
  EXPECT_THAT(store->Upsert(birds.parameters, MakeItems(3, 1)), IsOk());
}

TEST(PostgresServerKilled, AWatchListensAgainOnceItIsBack) {
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
  absl::SleepFor(absl::Milliseconds(2500));  // a few attempts
  server.Start();
  ASSERT_TRUE(counter.WaitForMoreThan(before));
  {
    const std::lock_guard<std::mutex> guard(mutex);
    ASSERT_FALSE(reports.empty());
    EXPECT_EQ(reports.front().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(std::adjacent_find(reports.begin(), reports.end()), reports.end())
        << "the same reason is told once";
  }
  const int after = counter.calls();
  ASSERT_THAT(OpenStore(conninfo)->Create(SmallCollection("birds")), IsOk());
  EXPECT_TRUE(counter.WaitForMoreThan(after));
}

}  // namespace
}  // namespace privatemail::testing
