// A daemon that is killed at a random time loses nothing that it acknowledged.
//
// SIGKILL ends the daemon under concurrent writes and builds; every fourth time also while it
// recovers. After each restart the data is compared with what was acknowledged.
//
// Unsynced writes survive these kills; store_power_loss_test.cc drops them. PostgreSQL itself runs
// on.
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "privatemail/search.h"
#include "tests/e2e/service.h"
#include "tests/e2e/writers.h"
#include "tests/testing/matchers.h"
#include "tests/testing/postgres_server.h"
#include "tests/testing/wait_until.h"

namespace privatemail::e2e {
namespace {

using std::chrono::microseconds;
using Stored = std::map<std::string, v1::Item>;

// Three writers upsert and delete, and a builder builds; all record what the server acknowledged.
class Kill : public Service {
 protected:
  void StoreInPostgres() {
    server_.emplace();
    const std::string file = folder_.Write("conninfo", server_->NewDatabase() + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_read);
    store_ = {"--postgres-file", file};
  }

  void SurviveKills(int kills) {
    ASSERT_NO_FATAL_FAILURE(Prepare());
    for (int kill = 1; kill <= kills && !HasFailure(); ++kill) {
      SCOPED_TRACE(kill);
      WorkUntilKilled();
      if (kill % 4 == 0) KillDuringStart();
      ASSERT_NO_FATAL_FAILURE(Start());
      Check();
    }
  }

 private:
  void Start() {
    daemon_ = std::make_unique<Daemon>(folder_ / "data",
                                       Join({"--insecure", "--log-level", "warning"}, store_));
    ASSERT_TRUE(daemon_->listening()) << daemon_->program().Wait().err;
  }

  void End() {
    daemon_->program().Signal(SIGKILL);
    daemon_->program().Wait();
  }

  void KillDuringStart() {
    const Program starting(Join(
        {PRIVATEMAILD, "--data-dir", folder_ / "data", "--listen", "127.0.0.1:0", "--insecure"},
        store_));
    // The random time of the kill is what is tested.
    std::this_thread::sleep_for(microseconds(bits_() % 60'000));
    starting.Signal(SIGKILL);
  }

  // Starts, creates the collection "things" with every scheme but cells, writes and builds.
  void Prepare() {
    Start();
    v1::CreateCollectionRequest things = NewThings();
    things.set_with_encrypted(true);
    ASSERT_THAT(Connect().CreateCollection(things), IsOk());
    for (int i = 0; i < 3; ++i) writers_.emplace_back(std::string(1, 'a' + i), "things", i + 1);
    for (Writer& writer : writers_) ASSERT_THAT(writer.Write(Connect(), 20), IsOk());
    ASSERT_THAT(BuildOnce(Connect()), IsOk());
  }

  absl::Status BuildOnce(const AdminClient& transport) {
    const auto built = transport.BuildEmbedding(
        "things", [](const auto& /*progress*/) {}, /*accept_misalignment=*/true);
    if (built.ok()) acknowledged_version_ = built->collection().embedding_version();
    return built.status();
  }

  // Runs all callers and ends their server after a random time.
  void WorkUntilKilled() {
    const AdminClient transport = Connect();
    std::atomic<bool> killed = false;
    std::vector<std::thread> threads;
    for (Writer& writer : writers_) {
      threads.emplace_back([&] {
        const absl::Status status = writer.WriteUntilFailure(transport);
        EXPECT_TRUE(killed) << "failed before the kill: " << status;
      });
    }
    threads.emplace_back([&] {
      while (BuildOnce(transport).ok()) {
        std::this_thread::sleep_for(microseconds(5'000));  // paces the load, is not a wait
      }
    });
    // The random time of the kill is what is tested.
    std::this_thread::sleep_for(microseconds(bits_() % 400'000));
    killed = true;
    End();
    for (std::thread& thread : threads) thread.join();
  }

  // Compares items, builds, a search for all embedded items and an encrypted search for all items
  // with what was acknowledged. A call in flight must have been applied as a whole or not at all;
  // it is settled then.
  void Check() {
    const AdminClient transport = Connect();
    const absl::StatusOr<Stored> stored = StoredItems(transport, "things");
    ASSERT_THAT(stored, IsOk());
    for (Writer& writer : writers_) {
      EXPECT_THAT(writer.Check(*stored), ::testing::IsEmpty());
      EXPECT_GT(writer.acknowledged_messages(), 0);
    }
    const auto things = transport.GetCollection("things");
    ASSERT_THAT(things, IsOk());
    EXPECT_EQ(things->items(), stored->size());
    const uint64_t version = things->embedding_version();
    EXPECT_TRUE(version == acknowledged_version_ || version == acknowledged_version_ + 1)
        << "build " << acknowledged_version_ << " was acknowledged, there: " << version;
    acknowledged_version_ = version;
    CheckSearch(transport, *things, *stored);
    CheckEncryptedSearch(*stored);
  }

  static void CheckSearch(const AdminClient& transport, const v1::GetCollectionResponse& things,
                          const Stored& stored) {
    v1::RetrieveRequest request = RandomSearch(things);
    request.set_embedding_version(things.embedding_version());
    request.set_k(1000);
    const auto answer = transport.Retrieve(request);
    ASSERT_THAT(answer, IsOk());
    for (const v1::Match& match : answer->slots(0).matches()) {
      EXPECT_EQ(stored.count(match.id()), 1u) << match.id() << " was deleted and is found";
    }
    EXPECT_EQ(static_cast<uint64_t>(answer->slots(0).matches_size()), things.embedded_items());
  }

  // Searches once the daemon has loaded the rows.
  void CheckEncryptedSearch(const Stored& stored) const {
    std::filesystem::create_directories(user_.state);
    std::filesystem::permissions(user_.state, std::filesystem::perms::owner_all);
    const auto client =
        SearchClient::Connect({.connection = Options(), .state_folder = user_.state});
    ASSERT_THAT(client, IsOk());
    absl::StatusOr<SearchResponse> answer;
    ASSERT_TRUE(WaitUntil([&] {
      answer = (*client)->Search({.collection = "things",
                                  .targets = {{.features = Eigen::RowVectorXf::Ones(kFeatures)}},
                                  .k = kMaxNeighbors,
                                  .with_payloads = true});
      return !absl::IsUnavailable(answer.status());
    }));
    ASSERT_THAT(answer, IsOk());
    std::set<std::string> found;
    for (const Match& match : answer->results[0].matches) {
      EXPECT_TRUE(found.insert(match.id).second) << match.id << " is found twice";
      const auto item = stored.find(match.id);
      ASSERT_NE(item, stored.end()) << match.id << " was deleted and is found under encryption";
      EXPECT_EQ(match.label, item->second.label()) << match.id;
      EXPECT_EQ(match.payload, item->second.payload()) << match.id;
    }
    EXPECT_EQ(found.size(), stored.size());
  }

  std::optional<PostgresServer> server_;
  Command store_;  // flags
  std::mt19937 bits_{17};
  std::vector<Writer> writers_;
  uint64_t acknowledged_version_ = 0;
};

TEST_F(Kill, AcknowledgedWritesSurviveOnSqlite) { SurviveKills(5); }
TEST_F(Kill, AcknowledgedWritesSurviveThirtyKillsOnSqlite) { SurviveKills(30); }
TEST_F(Kill, AcknowledgedWritesSurviveOnPostgres) {
  StoreInPostgres();
  SurviveKills(5);
}
TEST_F(Kill, AcknowledgedWritesSurviveThirtyKillsOnPostgres) {
  StoreInPostgres();
  SurviveKills(30);
}

}  // namespace
}  // namespace privatemail::e2e
