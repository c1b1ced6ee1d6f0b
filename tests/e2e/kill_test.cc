// A daemon that is killed at any instant loses nothing that it acknowledged.
//
// The daemon runs over a store on disk while three writers upsert and delete, a builder builds
// and a fourth caller takes snapshots and restores them.
// SIGKILL strikes it after a random time, every fourth time a second one while it recovers, and
// with PostgreSQL the database server too, every third time. It is started again on the same data,
// and what it answers is compared with what it had acknowledged. PRIVATEMAIL_KILLS in the
// environment says how many kills a store gets: 8 without it, which is what CI runs;
// tests/e2e/kill_daemon.sh runs 100.
//
// Writes that were not synced survive these kills; store_power_loss_test.cc takes them away.
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/service.h"
#include "tests/e2e/snapshotter.h"
#include "tests/e2e/writers.h"
#include "tests/testing/matchers.h"
#include "tests/testing/postgres_server.h"

namespace privatemail::e2e {
namespace {

using std::chrono::microseconds;

int Kills() {
  const char* const text = std::getenv("PRIVATEMAIL_KILLS");
  return text == nullptr ? 8 : std::atoi(text);
}

// The server may still be at work on what a client had sent before it died.
void AwaitNoClients(const std::string& conninfo) {
  const std::string count =
      "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> "
      "pg_backend_pid()";
  while (PostgresServer::Ask(conninfo, count) != "0") {
    std::this_thread::sleep_for(microseconds(10'000));
  }
}

class Kill : public Service {
 protected:
  void Start() {
    std::vector<std::string> flags = flags_;
    flags.insert(flags.begin(), {"--insecure", "--log-level", "warning"});
    daemon_ = std::make_unique<Daemon>(folder_ / "data", flags);
    ASSERT_TRUE(daemon_->listening()) << daemon_->program().Wait().err;
  }

  void End() {
    daemon_->program().Signal(SIGKILL);
    daemon_->program().Wait();
  }

  // Once before it listens, at the latest.
  void KillWhileItStarts() {
    std::vector<std::string> command = {PRIVATEMAILD, "--data-dir",  folder_ / "data",
                                        "--listen",   "127.0.0.1:0", "--insecure"};
    command.insert(command.end(), flags_.begin(), flags_.end());
    const Program starting(command);
    std::this_thread::sleep_for(microseconds(bits_() % 60'000));
    starting.Signal(SIGKILL);
  }

  // Builds until a build fails.
  void BuildUntilFailure(const Transport& transport) {
    while (true) {
      const auto built = transport.BuildEmbedding("things", [](const auto& /*progress*/) {});
      if (!built.ok()) return;
      acknowledged_version_ = built->collection().embedding_version();
      ++builds_;
      std::this_thread::sleep_for(microseconds(5'000));
    }
  }

  // Everybody is at work when `strike` ends what they work with.
  void WorkUntil(const std::function<void()>& strike) {
    const Transport transport = Connect();
    std::atomic<bool> struck = false;
    std::vector<std::thread> threads;
    for (Writer& writer : writers_) {
      threads.emplace_back([&] {
        const absl::Status status = writer.WriteUntilFailure(transport);
        EXPECT_TRUE(struck) << "failed by itself: " << status;
      });
    }
    threads.emplace_back([&] { BuildUntilFailure(transport); });
    threads.emplace_back([&] {
      const absl::Status status = snapshotter_.WorkUntilFailure(transport);
      EXPECT_TRUE(struck) << "failed by itself: " << status;
      EXPECT_FALSE(absl::IsDataLoss(status)) << status;
    });
    std::this_thread::sleep_for(microseconds(bits_() % 400'000));
    struck = true;
    strike();
    for (std::thread& thread : threads) thread.join();
  }

  // A search for all that is embedded finds nothing that was deleted.
  void Search(const Transport& transport, const v1::GetCollectionResponse& things,
              const Stored& stored) const {
    v1::RetrieveRequest request = RandomSearch(things);
    request.set_embedding_version(acknowledged_version_);
    request.set_k(1000);
    const auto answer = transport.Retrieve(request);
    ASSERT_THAT(answer, IsOk());
    for (const v1::Match& match : answer->slots(0).matches()) {
      EXPECT_EQ(stored.count(match.id()), 1u) << match.id() << " was deleted and is found";
    }
    EXPECT_EQ(static_cast<uint64_t>(answer->slots(0).matches_size()), things.embedded_items());
  }

  void Count(const std::vector<std::string>& losses) {
    losses_ += static_cast<int64_t>(losses.size());
    for (const std::string& loss : losses) ADD_FAILURE() << loss;
  }

  void Check() {
    const Transport transport = Connect();
    const absl::StatusOr<Stored> stored = StoredItems(transport, "things");
    ASSERT_THAT(stored, IsOk());
    for (Writer& writer : writers_) Count(writer.Check(*stored));
    Count(snapshotter_.Check(transport));
    const auto things = transport.GetCollection("things");
    ASSERT_THAT(things, IsOk());
    EXPECT_EQ(things->items(), stored->size());
    if (things->embedding_version() < acknowledged_version_) {
      ++losses_;
      ADD_FAILURE() << "build " << acknowledged_version_ << " is not there";
    }
    EXPECT_LE(things->embedding_version(), acknowledged_version_ + 1);
    acknowledged_version_ = things->embedding_version();
    Search(transport, *things, *stored);
  }

  void Prepare() {
    Start();
    CreateCollection();
    for (int i = 0; i < 3; ++i) writers_.emplace_back(std::string(1, 'a' + i), "things", i + 1);
    for (Writer& writer : writers_) ASSERT_THAT(writer.Write(Connect(), 20), IsOk());
    BuildOnce();
  }

  void BuildOnce() {
    const auto built = Connect().BuildEmbedding("things", [](const auto& /*progress*/) {});
    ASSERT_THAT(built, IsOk());
    acknowledged_version_ = built->collection().embedding_version();
  }

  void Report(const char* store, int kills) const {
    int64_t messages = 0, items = 0, there = 0, not_there = 0;
    for (const Writer& writer : writers_) {
      messages += writer.acknowledged_messages();
      items += writer.acknowledged_items();
      there += writer.open_there();
      not_there += writer.open_not_there();
    }
    std::printf(
        "%s: %d kills, %lld acknowledged writes of %lld items, %lld builds, %lld snapshots and "
        "%lld "
        "restored copies checked, %lld losses (of what was not acknowledged, %lld writes were "
        "there as a whole and %lld not at all)\n",
        store, kills, static_cast<long long>(messages), static_cast<long long>(items),
        static_cast<long long>(builds_), static_cast<long long>(snapshotter_.snapshots()),
        static_cast<long long>(snapshotter_.restored()), static_cast<long long>(losses_),
        static_cast<long long>(there), static_cast<long long>(not_there));
    EXPECT_GT(messages, kills);
    EXPECT_EQ(losses_, 0);
  }

  std::mt19937 bits_{17};
  std::vector<std::string> flags_;
  std::vector<Writer> writers_;
  Snapshotter snapshotter_{"things"};
  uint64_t acknowledged_version_ = 0;
  int64_t builds_ = 0;
  int64_t losses_ = 0;
};

TEST_F(Kill, LosesNothingThatWasAcknowledgedOnSqlite) {
  ASSERT_NO_FATAL_FAILURE(Prepare());
  for (int kill = 1; kill <= Kills() && !HasFailure(); ++kill) {
    SCOPED_TRACE(kill);
    WorkUntil([&] { End(); });
    if (kill % 4 == 0) KillWhileItStarts();
    ASSERT_NO_FATAL_FAILURE(Start());
    Check();
  }
  Report("SQLite", Kills());
}

TEST_F(Kill, LosesNothingThatWasAcknowledgedOnPostgres) {
  PostgresServer server;
  const std::string conninfo = server.NewDatabase();
  const std::string file = folder_.Write("conninfo", conninfo + "\n");
  ::chmod(file.c_str(), 0600);
  flags_ = {"--store", "postgres", "--postgres-file", file};
  ASSERT_NO_FATAL_FAILURE(Prepare());
  for (int kill = 1; kill <= Kills() && !HasFailure(); ++kill) {
    SCOPED_TRACE(kill);
    if (kill % 3 == 0) {
      WorkUntil([&] { server.Kill(); });
      End();
      server.Start();
    } else {
      WorkUntil([&] { End(); });
      AwaitNoClients(conninfo);
    }
    if (kill % 4 == 0) KillWhileItStarts();
    ASSERT_NO_FATAL_FAILURE(Start());
    Check();
  }
  Report("PostgreSQL", Kills());
}

}  // namespace
}  // namespace privatemail::e2e
